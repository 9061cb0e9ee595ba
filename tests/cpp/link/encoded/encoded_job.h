// The encoded links of all ranks of a job, in one process.
#pragma once

#include <cmath>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "core/link/encoded/encoded_link.h"
#include "meeting.h"

namespace deft::testing_support {

inline constexpr std::size_t kElements = 1000;
inline const std::vector<ValueRange> kRaw = {{0, 4}, {500, 3}};

// The links of all ranks, and an encoding of each rank by the name of the message.
struct Job {
  // By tags: over a mesh, on which "plain" travels as it is.
  Job(std::size_t ranks, const std::vector<std::string>& names, bool owners,
      MeetsBy by = MeetsBy::kName, std::size_t elements = kElements,
      const std::vector<ValueRange>& raw = kRaw)
      : meeting(std::make_shared<Meeting>(ranks, by == MeetsBy::kTag ? MeetsBy::kName : by)) {
    if (by == MeetsBy::kTag) mesh = std::make_shared<Meeting>(ranks, by);
    const auto size = static_cast<std::int32_t>(ranks);
    for (std::int32_t rank = 0; rank < size; ++rank) {
      Encodings of_rank;
      for (const std::string& name : names) {
        of_rank[name] =
            std::make_shared<Encoding>(wire::Format::kInt8, static_cast<std::int64_t>(elements),
                                       raw, owners ? size : 1, owners ? rank : 0);
      }
      encodings.push_back(of_rank);
      const auto place = static_cast<std::size_t>(rank);
      EncodedLinkOptions here{size, rank, 1.0F / static_cast<float>(size), {}, {}, {}};
      if (mesh != nullptr) {
        here.mesh = std::make_shared<MeetingLink>(mesh, place);
        here.exact["plain"] = std::make_shared<Encoding>(
            wire::Format::kF32, static_cast<std::int64_t>(elements), std::vector<ValueRange>(),
            owners ? size : 1, owners ? rank : 0);
      }
      links.push_back(std::make_shared<EncodedLink>(std::make_shared<MeetingLink>(meeting, place),
                                                    here, of_rank));
      options.push_back(std::move(here));
    }
  }
  ~Job() {
    meeting->end();
    if (mesh != nullptr) mesh->end();
  }

  // Of all ranks; the values become what arrives.
  std::vector<LinkStatus> reduce(std::vector<Floats>& values, const std::string& name,
                                 std::int32_t fusion_group = 0) {
    std::vector<std::future<LinkStatus>> answers;
    for (std::size_t rank = 0; rank < links.size(); ++rank) {
      Message message = message_on(values[rank], name);
      message.fusion_group = fusion_group;
      answers.push_back(sent(*links[rank], std::move(message)));
    }
    std::vector<LinkStatus> found;
    for (auto& answer : answers) found.push_back(wait_for(answer));
    return found;
  }

  std::shared_ptr<Meeting> meeting;
  std::shared_ptr<Meeting> mesh;  // null: there is none
  std::vector<Encodings> encodings;
  std::vector<EncodedLinkOptions> options;
  std::vector<std::shared_ptr<EncodedLink>> links;
};

inline std::vector<Floats> values_of(std::size_t ranks, unsigned seed,
                                     std::size_t elements = kElements) {
  std::vector<Floats> values;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    values.push_back(random_values(elements, 100 * seed + static_cast<unsigned>(rank)));
  }
  return values;
}

// All that is left, on any rank, of values and of sums.
inline double left_in(const Job& job, const std::string& name) {
  double left = 0.0;
  for (const Encodings& of_rank : job.encodings) {
    for (const auto rests : {of_rank.at(name)->rest(), of_rank.at(name)->sum_rest()}) {
      for (const float rest : rests) left += std::abs(static_cast<double>(rest));
    }
  }
  return left;
}

}  // namespace deft::testing_support
