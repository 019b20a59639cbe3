// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/runner.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "millstream/backend/workers.h"

namespace millstream::python {
namespace {

using Clock = std::chrono::steady_clock;

bool finalizing() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

/// A thread of the runtime keeps its Python thread state from its first call to its end: making one for each call costs
/// more than the call.
class WorkerOfPython {
 public:
  WorkerOfPython() : ensured_(PyGILState_Ensure()) { state_ = PyEval_SaveThread(); }
  ~WorkerOfPython() {
    if (finalizing()) return;  // the interpreter has ended all threads but one
    PyEval_RestoreThread(state_);
    PyGILState_Release(ensured_);
  }
  WorkerOfPython(const WorkerOfPython&) = delete;
  WorkerOfPython& operator=(const WorkerOfPython&) = delete;
  PyThreadState* state() const { return state_; }

 private:
  PyGILState_STATE ensured_;
  PyThreadState* state_;
};

PyThreadState* state_of_this_thread() {
  if (PyThreadState* const own = PyGILState_GetThisThreadState()) return own;  // the caller of run, or seen before
  thread_local WorkerOfPython worker;
  return worker.state();
}

class HoldsGil {
 public:
  HoldsGil() { PyEval_RestoreThread(state_of_this_thread()); }
  ~HoldsGil() { PyEval_SaveThread(); }
  HoldsGil(const HoldsGil&) = delete;
  HoldsGil& operator=(const HoldsGil&) = delete;
};

// What a plan gives an operator counts for the machine that it is made for: of another target only streams do.
std::uint32_t workers_for(const Plan& plan) {
  if (plan.target.name != "cpu") return default_workers(machine_cores(), 1, plan.compiled.schedule);
  return default_workers(plan.target.cores, plan.compiled.assignment.threads_per_op, plan.compiled.schedule);
}

}  // namespace

/// When and where a node was called.
struct Runner::Moment {
  std::thread::id thread;  // of none: it was not
  PhysicalStreamId stream;
  Clock::time_point begin, end;
};

struct Runner::Moments {
  explicit Moments(std::size_t nodes) : of(nodes) {}
  std::vector<NodeId> called() const {
    std::vector<NodeId> out;
    for (const NodeId n : ids<NodeId>(of.size())) {
      if (of[n].thread != std::thread::id()) out.push_back(n);
    }
    std::sort(out.begin(), out.end(), [&](NodeId a, NodeId b) { return std::pair(of[a].begin, a) < std::pair(of[b].begin, b); });
    return out;
  }
  Clock::time_point begin;  // of the run
  IdVec<NodeId, Moment> of;
};

/// The launcher of one run.
class Runner::Calls final : public Launcher {
 public:
  /// `calls`: borrowed, by Python's node ids.
  Calls(const Plan& plan, PyObject* const* calls) : plan_(plan), calls_(calls), moments_(std::make_unique<Moments>(plan.graph.node_count())) {}

  Result<void> launch(NodeId node, PhysicalStreamId stream) override {
    const auto& given = plan_.given[node];
    if (!given || calls_[*given] == Py_None) return {};
    const HoldsGil gil;
    Moment& moment = moments_->of[node];
    moment.thread = std::this_thread::get_id();
    moment.stream = stream;
    moment.begin = Clock::now();
    PyObject* const result = PyObject_CallNoArgs(calls_[*given]);
    moment.end = Clock::now();
    if (result != nullptr) {
      Py_DECREF(result);
      return {};
    }
    nb::python_error error;
    if (!raised_ || *given < raised_by_) {
      raised_.emplace(std::move(error));
      raised_by_ = *given;
    }
    return Error{ErrorCode::kernel, "a callable raised"};
  }

  void begin() { moments_->begin = Clock::now(); }
  /// What was raised by the first node, in the order of Python's ids, of those that raised.
  std::optional<nb::python_error> take_raised() { return std::move(raised_); }
  std::unique_ptr<Moments> take_moments() { return std::move(moments_); }

 private:
  const Plan& plan_;
  PyObject* const* const calls_;
  std::optional<nb::python_error> raised_;  // under the GIL
  std::uint32_t raised_by_ = 0;
  std::unique_ptr<Moments> moments_;
};

Runner::Runner(std::shared_ptr<const Plan> plan, std::uint32_t workers)
    : plan_(std::move(plan)), workers_(workers == 0 ? workers_for(*plan_) : workers) {
  if (plan_->compiled.schedule.has_control()) {
    throw ErrorThrown{Error{ErrorCode::unsupported, "the plan has control flow on the device, which a Runner does not run"}};
  }
  for (std::uint32_t n = 0; n < plan_->prepared.size(); ++n) {
    if (!plan_->stream[plan_->prepared[n]]) without_task_.push_back(n);
  }
}

// Devices whose threads are gone, or cannot be ended: nothing can be done with them any more.
void Runner::abandon_devices() {
  for (auto& device : free_) static_cast<void>(device.release());
  free_.clear();
}

// A fork takes no threads with it.
void Runner::become_process() {
  abandon_devices();
  process_ = ::getpid();
}

Runner::~Runner() {
  // While the interpreter ends, threads that want the GIL hang.
  if (::getpid() != process_ || finalizing()) {
    abandon_devices();
    return;
  }
  const nb::gil_scoped_release workers_end;
  free_.clear();
}

std::unique_ptr<Backend> Runner::take_device() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Backend> device = std::move(free_.back());
      free_.pop_back();
      return device;
    }
  }
  return make_cpu_backend(workers_, 0);  // the callables' threads are their own affair
}

void Runner::give_back(std::unique_ptr<Backend> device, std::unique_ptr<Moments> moments) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(device));
  last_ = std::move(moments);
}

void Runner::run(const nb::sequence& calls) {
  if (::getpid() != process_) become_process();
  const nb::object list = nb::steal(PySequence_Tuple(calls.ptr()));
  if (!list.is_valid()) throw nb::python_error();
  const auto given = static_cast<std::size_t>(PyTuple_GET_SIZE(list.ptr()));
  if (given != plan_->prepared.size()) {
    throw ErrorThrown{Error{ErrorCode::usage, fmt::format("run was given {} calls; the plan has {} nodes", given, plan_->prepared.size())}.help(
        "one a node, in the order of their ids; None where there is nothing to do")};
  }
  PyObject* const* const items = &PyTuple_GET_ITEM(list.ptr(), 0);
  for (const std::uint32_t n : without_task_) {
    if (items[n] == Py_None) continue;
    const NodeId node = plan_->prepared[n];
    throw ErrorThrown{Error{ErrorCode::usage, fmt::format("node {} \"{}\" has a call, but operators of type {} have no task", n, plan_->graph.name(node),
                                                          plan_->graph.type(node))}.help("give None, or another type")};
  }
  Calls launcher(*plan_, items);
  const Result<void> done = [&]() -> Result<void> {
    const nb::gil_scoped_release workers_call;
    std::unique_ptr<Backend> device = take_device();
    launcher.begin();
    Result<Trace> trace = device->execute(plan_->graph, plan_->compiled.schedule, launcher, {});
    give_back(std::move(device), launcher.take_moments());
    if (!trace.ok()) return std::move(trace).error();
    return {};
  }();
  if (auto raised = launcher.take_raised()) throw std::move(*raised);
  if (!done.ok()) throw ErrorThrown{done.error()};
}

std::vector<Runner::Called> Runner::last_trace() const {
  const std::lock_guard lock(mutex_);
  std::vector<Called> out;
  if (last_ == nullptr) return out;
  const auto us = [&](Clock::time_point t) { return std::chrono::duration<double, std::micro>(t - last_->begin).count(); };
  std::vector<std::thread::id> threads;  // in the order of their first call
  for (const NodeId n : last_->called()) {
    const Moment& m = last_->of[n];
    const auto at = std::find(threads.begin(), threads.end(), m.thread);
    out.emplace_back(*plan_->given[n], m.stream.index, static_cast<std::uint32_t>(at - threads.begin()), us(m.begin), us(m.end));
    if (at == threads.end()) threads.push_back(m.thread);
  }
  std::stable_sort(out.begin(), out.end(), [](const Called& a, const Called& b) { return std::get<1>(a) < std::get<1>(b); });
  return out;
}

void bind_runner(nb::module_& m) {
  nb::class_<Runner>(m, "Runner",
                     "Runs a plan's nodes as Python callables, on the streams and events of the runtime's cpu device. Reusable, from any thread.")
      .def(nb::init<std::shared_ptr<const Plan>, std::uint32_t>(), nb::arg("plan"), nb::arg("workers") = 0,
           "workers: threads that call, the caller of run among them; 0: one a stream, up to the cores (over the threads that a\n"
           "plan for cpu gives an operator).\n"
           "Raises Error E65 for a plan with control flow on the device.")
      .def("run", &Runner::run, nb::arg("calls"),
           nb::sig("def run(self, calls: collections.abc.Sequence[collections.abc.Callable[[], object] | None]) -> None"),
           "Calls each node's callable, without arguments, on its stream once all that the plan orders before it has ended.\n\n"
           "calls: one a node, in the order of their ids; None: nothing to do. What they return is dropped. They hold the GIL; what releases it,\n"
           "as PyTorch's operators do, runs beside the other streams. They run on several threads: thread-local modes of the caller do not hold in them.\n"
           "Once one raises, no more are called; when all streams are quiet, the exception of the first node by id that raised is raised here.\n"
           "A run inside a callable, and runs from several threads, are independent of each other.\n"
           "Raises Error E33 for another number of calls than nodes, and for a call of a node without a task.")
      .def("last_trace", &Runner::last_trace,
           "(node, stream, worker, start, end) of each call of the run that ended last, by stream, then as they ran. Microseconds from the run's begin;\n"
           "a call starts when it has the GIL. Workers are numbered in the order of their first call. Calls that were dropped are missing.")
      .def_prop_ro("workers", &Runner::workers);
}

}  // namespace millstream::python
