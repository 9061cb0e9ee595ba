// HorovodLink and the ABI check.
#include <condition_variable>
#include <mutex>

#include "bindings/bindings.h"
#include "horovod/abi_check.h"
#include "horovod/horovod_link.h"
#include "torch/memory.h"

namespace py = pybind11;

namespace deft {

namespace {

std::shared_ptr<HorovodLink> make_link(std::int32_t process_set_id, bool average, double prescale,
                                       double postscale) {
  HorovodLinkOptions options;
  options.process_set_id = process_set_id;
  options.reduction = average ? Reduction::kAverage : Reduction::kSum;
  options.prescale = prescale;
  options.postscale = postscale;
  return std::make_shared<HorovodLink>(options, torch_allocator());
}

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

std::shared_ptr<Ticket> send(HorovodLink& link, const std::string& name, const std::string& op,
                             const at::Tensor& input, const at::Tensor& output, std::int32_t root) {
  TORCH_CHECK(input.is_contiguous() && output.is_contiguous(), name,
              ": a message is one contiguous range of memory");
  // Horovod's broadcast writes to the other ranks only; the root sends what it will keep.
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

void bind_horovod(py::module_& module) {
  py::class_<AbiFact>(module, "AbiFact")
      .def_readonly("what", &AbiFact::what)
      .def_readonly("compiled", &AbiFact::compiled)
      .def_readonly("loaded", &AbiFact::loaded)
      .def_property_readonly("matches", &AbiFact::matches);
  module.def("abi_facts", &abi_facts, py::arg("horovod_version"), py::arg("torch_version"));
  py::class_<Ticket, std::shared_ptr<Ticket>>(module, "Ticket")
      .def("wait", &Ticket::wait, py::arg("timeout_s"), py::call_guard<py::gil_scoped_release>());
  py::class_<HorovodLink, std::shared_ptr<HorovodLink>>(module, "HorovodLink",
                                                        "Messages through Horovod's queue.")
      .def(py::init(&make_link), py::arg("process_set_id") = 0, py::arg("average") = true,
           py::arg("prescale") = 1.0, py::arg("postscale") = 1.0)
      .def("send", &send, py::arg("name"), py::arg("op"), py::arg("input"), py::arg("output"),
           py::arg("root") = 0);
}

}  // namespace deft
