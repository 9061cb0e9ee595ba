// What all links have in common: a message is sent, and its ticket can be waited for.
#include "core/link.h"

#include <condition_variable>
#include <mutex>

#include "bindings/bindings.h"
#include "torch/memory.h"

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
  for (const Op op : {Op::kAllReduce, Op::kReduceScatter, Op::kAllGather, Op::kBroadcast}) {
    if (name == name_of(op)) {
      return op;
    }
  }
  TORCH_CHECK(false, "unknown operation '", name, "'");
}

std::shared_ptr<Ticket> send(Link& link, const std::string& name, const std::string& op,
                             const at::Tensor& input, const at::Tensor& output, std::int32_t root) {
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
  auto ticket = std::make_shared<Ticket>();
  const py::gil_scoped_release release;
  link.send(std::move(message), [ticket](const LinkStatus& status) { ticket->finish(status); });
  return ticket;
}

}  // namespace

void bind_link(const py::module_& module) {
  py::class_<Ticket, std::shared_ptr<Ticket>>(module, "Ticket")
      .def("wait", &Ticket::wait, py::arg("timeout_s"), py::call_guard<py::gil_scoped_release>());
  py::class_<Link, std::shared_ptr<Link>>(module, "Link", "A path that messages can take.")
      .def("send", &send, py::arg("name"), py::arg("op"), py::arg("input"), py::arg("output"),
           py::arg("root") = 0);
}

}  // namespace deft
