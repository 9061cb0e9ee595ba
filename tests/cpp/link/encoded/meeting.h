// Ranks in one process: links whose messages meet by name, by their order alone, or by tags.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/link/link.h"
#include "core/link/serial_worker.h"

namespace deft::testing_support {

using Floats = std::vector<float>;

inline Floats random_values(std::size_t elements, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Floats values(elements);
  for (float& value : values) value = normal(generator);
  return values;
}

inline Message message_on(Floats& values, const std::string& name) {
  Message message;
  message.name = name;
  message.input = message.output = values.data();
  message.input_elements = message.output_elements = static_cast<std::int64_t>(values.size());
  return message;
}

inline std::future<LinkStatus> sent(Link& link, Message message) {
  auto promise = std::make_shared<std::promise<LinkStatus>>();
  link.send(std::move(message), [promise](const LinkStatus& s) { promise->set_value(s); });
  return promise->get_future();
}

inline LinkStatus wait_for(std::future<LinkStatus>& future) {
  if (future.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
    return {Outcome::kAborted, "no answer"};
  }
  return future.get();
}

enum class MeetsBy { kName, kOrder, kTag };

// Where the ranks' messages meet. The last one to come delivers to all.
class Meeting {
 public:
  Meeting(std::size_t ranks, MeetsBy by) : order(ranks), ranks_(ranks), by_(by) {}

  [[nodiscard]] bool by_order() const { return by_ == MeetsBy::kOrder; }

  void come(std::size_t rank, Message message, Completion done) {
    std::vector<Came> all;
    LinkStatus status;
    {
      const std::lock_guard lock(mutex_);
      const std::string place = place_of(rank, message);
      order[rank].push_back(message.name);
      auto& came = here_[place];
      came.resize(ranks_);
      came[rank] = {std::move(message), std::move(done)};
      if (++count_[place] % ranks_ != 0) return;
      all = std::move(here_[place]);
      here_.erase(place);
      const auto failing = failures.find(all[0].message.name);
      if (failing != failures.end()) status = failing->second;
      for (const Came& each : all) {
        if (each.message.name != all[0].message.name) {
          status = {Outcome::kInvalid, each.message.name + " met " + all[0].message.name};
        }
        types[each.message.name].insert(each.message.dtype);
      }
    }
    if (status.ok()) deliver(all);
    for (Came& to : all) to.done(status);
  }

  // A message that never meets the others holds its link, and that holds the meeting.
  void end() {
    const std::lock_guard lock(mutex_);
    here_.clear();
  }

  std::map<std::string, LinkStatus> failures;   // by the names of messages
  std::vector<std::vector<std::string>> order;  // of each rank, as they came
  std::map<std::string, std::set<DType>> types;

 private:
  struct Came {
    Message message;
    Completion done;
  };

  [[nodiscard]] std::string place_of(std::size_t rank, const Message& message) const {
    switch (by_) {
      case MeetsBy::kOrder:
        return std::to_string(order[rank].size());
      case MeetsBy::kTag:
        return std::to_string(message.tag);
      default:
        return message.name;
    }
  }

  static std::size_t bytes(const Message& message, std::int64_t elements) {
    return static_cast<std::size_t>(elements * bytes_of(message.dtype));
  }

  // Codes, modulo their range, into memory that may be an input.
  template <typename Code>
  static void add(const std::vector<Came>& all) {
    std::vector<Code> sums(static_cast<std::size_t>(all[0].message.input_elements));
    for (const Came& from : all) {
      const auto* in = static_cast<const Code*>(from.message.input);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<Code>(sums[i] + in[i]);
    }
    for (const Came& into : all) {
      std::memcpy(into.message.output, sums.data(), sums.size() * sizeof(Code));
    }
  }

  // Into memory that may be an input.
  static void average(const std::vector<Came>& all) {
    Floats sums(static_cast<std::size_t>(all[0].message.input_elements));
    for (const Came& from : all) {
      const auto* in = static_cast<const float*>(from.message.input);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += in[i];
    }
    for (float& sum : sums) sum /= static_cast<float>(all.size());
    for (std::size_t to = 0; to < all.size(); ++to) {
      const Message& into = all[to].message;
      const std::size_t own = into.op == Op::kAllReduce ? sums.size() : sums.size() / all.size();
      const std::size_t begin = into.op == Op::kAllReduce ? 0 : to * own;
      std::memcpy(into.output, sums.data() + begin, own * sizeof(float));
    }
  }

  static void deliver(const std::vector<Came>& all) {
    const Message& first = all[0].message;
    const bool reduces = first.op == Op::kAllReduce || first.op == Op::kReduceScatter;
    if (reduces && first.dtype == DType::kFloat32) {
      average(all);
      return;
    }
    if (first.op == Op::kAllReduce) {
      switch (bytes_of(first.dtype)) {
        case 1:
          return add<std::uint8_t>(all);
        case 2:
          return add<std::uint16_t>(all);
        default:
          return add<std::uint32_t>(all);
      }
    }
    for (std::size_t to = 0; to < all.size(); ++to) {
      const Message& into = all[to].message;
      auto* out = static_cast<char*>(into.output);
      for (std::size_t from = 0; from < all.size(); ++from) {
        const Message& source = all[from].message;
        const auto* in = static_cast<const char*>(source.input);
        std::size_t length = bytes(source, source.input_elements);
        if (into.op == Op::kAllToAll) {
          for (std::size_t i = 0; i < to; ++i) in += bytes(source, source.to_ranks[i]);
          length = bytes(source, source.to_ranks[to]);
        }
        if (!into.from_ranks.empty() && length != bytes(into, into.from_ranks[from])) std::abort();
        if (out != in) std::memcpy(out, in, length);
        out += length;
      }
    }
  }

  const std::size_t ranks_;
  const MeetsBy by_;
  std::mutex mutex_;
  std::map<std::string, std::vector<Came>> here_;
  std::map<std::string, std::size_t> count_;
};

// Each message travels on a thread of its rank, and takes its time.
class MeetingLink : public Link {
 public:
  MeetingLink(std::shared_ptr<Meeting> meeting, std::size_t rank)
      : meeting_(std::move(meeting)), rank_(rank), random_(static_cast<unsigned>(rank)) {}

  void send(Message message, Completion done) override {
    const std::chrono::microseconds lasts(drawn());
    worker_.post([meeting = meeting_, rank = rank_, lasts, message = std::move(message),
                  done = std::move(done)] {
      std::this_thread::sleep_for(lasts);
      meeting->come(rank, message, done);
    });
  }
  [[nodiscard]] bool matches_by_order() const override { return meeting_->by_order(); }
  [[nodiscard]] bool takes_any_integers() const override { return true; }

 private:
  std::mt19937::result_type drawn() {
    const std::lock_guard lock(mutex_);
    return random_() % 200;
  }

  const std::shared_ptr<Meeting> meeting_;
  const std::size_t rank_;
  std::mutex mutex_;
  std::mt19937 random_;
  SerialWorker worker_;
};

}  // namespace deft::testing_support
