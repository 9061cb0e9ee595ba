// What all links have in common: a message is sent, and its ticket can be waited for.
#include "bindings/bindings.h"

#include "core/link/link.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "torch/memory/memory.h"

namespace py = pybind11;

namespace deft {

namespace {

// The completion of one message, to be waited for from Python.
class Ticket {
 public:
  void finish(const LinkStatus& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = status;
    done_ = true;
    changed_.notify_all();
  }
  // "" when it went well, the reason when not; throws when the time is over.
  std::string wait(double timeout_s) {
    std::unique_lock<std::mutex> lock(mutex_);
    TORCH_CHECK(
        changed_.wait_for(lock, std::chrono::duration<double>(timeout_s), [this] { return done_; }),
        "the message did not finish within ", timeout_s, " s");
    return status_.ok() ? "" : status_.reason;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  LinkStatus status_;
  bool done_ = false;
};

Op op_named(const std::string& name) {
  for (const Op op :
       {Op::kAllReduce, Op::kReduceScatter, Op::kAllGather, Op::kBroadcast, Op::kAllToAll}) {
    if (name == name_of(op)) {
      return op;
    }
  }
  TORCH_CHECK(false, "unknown operation '", name, "'");
}

Message message_of(const std::string& name, const std::string& op, const at::Tensor& input,
                   const at::Tensor& output, std::int32_t root) {
  TORCH_CHECK(input.is_contiguous() && output.is_contiguous(), name,
              ": a message is one contiguous range of memory");
  // A broadcast writes to the other ranks only; the root sends what it will keep.
  const bool broadcast = op == name_of(Op::kBroadcast);
  if (broadcast && output.data_ptr() != input.data_ptr()) {
    output.copy_(input);
  }
  Message message;
  message.name = name;
  message.op = op_named(op);
  message.dtype = from_torch(input.scalar_type());
  message.input = broadcast ? output.data_ptr() : input.data_ptr();
  message.input_elements = input.numel();
  message.output = output.data_ptr();
  message.output_elements = output.numel();
  message.root = root;
  message.device = device_index(input.device());
  message.owner =
      std::make_shared<std::pair<at::Tensor, at::Tensor>>(input.detach(), output.detach());
  return message;
}

using Counts = std::vector<std::int64_t>;

std::shared_ptr<Ticket> send(Link& link, const std::string& name, const std::string& op,
                             const at::Tensor& input, const at::Tensor& output, std::int32_t root,
                             Counts to_ranks, Counts from_ranks, std::int32_t tag) {
  Message message = message_of(name, op, input, output, root);
  message.to_ranks = std::move(to_ranks);
  message.from_ranks = std::move(from_ranks);
  message.tag = tag;
  auto ticket = std::make_shared<Ticket>();
  const py::gil_scoped_release release;
  link.send(std::move(message), [ticket](const LinkStatus& status) { ticket->finish(status); });
  return ticket;
}

// Messages in turn, as the executor sends them: the next one is handed over from inside the
// completion of the one that it takes the place of.
class Run : public std::enable_shared_from_this<Run> {
 public:
  Run(std::shared_ptr<Link> link, std::vector<Message> places, std::int64_t messages)
      : link_(std::move(link)), places_(std::move(places)), left_(messages) {}

  std::shared_ptr<Ticket> start() {
    const auto first = std::min(static_cast<std::int64_t>(places_.size()), left_);
    left_ -= first;
    flying_ = first;
    if (first == 0) {
      ticket_->finish({});
    }
    for (std::int64_t place = 0; place < first; ++place) {
      send(static_cast<std::size_t>(place));
    }
    return ticket_;
  }

 private:
  void send(std::size_t place) {
    link_->send(places_[place], [self = shared_from_this(), place](const LinkStatus& status) {
      self->landed(place, status);
    });
  }

  void landed(std::size_t place, const LinkStatus& status) {
    bool again = false;
    bool over = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      again = status.ok() && left_ > 0;
      left_ = status.ok() ? left_ - static_cast<std::int64_t>(again) : 0;
      flying_ -= static_cast<std::int64_t>(!again);
      over = !status.ok() || flying_ == 0;
    }
    if (again) {
      send(place);
    } else if (over) {
      ticket_->finish(status);
    }
  }

  const std::shared_ptr<Link> link_;
  const std::vector<Message> places_;
  const std::shared_ptr<Ticket> ticket_ = std::make_shared<Ticket>();
  std::mutex mutex_;
  std::int64_t left_;  // not sent yet
  std::int64_t flying_ = 0;
};

std::shared_ptr<Ticket> run(std::shared_ptr<Link> link, const std::vector<std::string>& names,
                            const std::string& op, const std::vector<at::Tensor>& inputs,
                            const std::vector<at::Tensor>& outputs, std::int64_t messages) {
  TORCH_CHECK(!names.empty() && names.size() == inputs.size() && names.size() == outputs.size(),
              "each name needs an input and an output, and there has to be one");
  std::vector<Message> places;
  places.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    places.push_back(message_of(names[i], op, inputs[i], outputs[i], 0));
  }
  const py::gil_scoped_release release;
  return std::make_shared<Run>(std::move(link), std::move(places), messages)->start();
}

}  // namespace

void bind_link(const py::module_& module) {
  py::class_<Ticket, std::shared_ptr<Ticket>>(module, "Ticket")
      .def("wait", &Ticket::wait, py::arg("timeout_s"), py::call_guard<py::gil_scoped_release>());
  py::class_<Link, std::shared_ptr<Link>>(module, "Link", "A path that messages can take.")
      .def("send", &send, py::arg("name"), py::arg("op"), py::arg("input"), py::arg("output"),
           py::arg("root") = 0, py::arg("to_ranks") = Counts{}, py::arg("from_ranks") = Counts{},
           py::arg("tag") = -1)
      .def("run", &run, py::arg("names"), py::arg("op"), py::arg("inputs"), py::arg("outputs"),
           py::arg("messages"));
}

}  // namespace deft
