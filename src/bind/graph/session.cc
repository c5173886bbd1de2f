// Sessions: one plan a pair of feeds and fetches.
#include <nanobind/stl/string.h>

#include <limits>
#include <optional>
#include <vector>

#include "base/cancellation.h"
#include "base/hash_map.h"
#include "base/thread_pool.h"
#include "base/timeline.h"
#include "bind/python/call_stops.h"
#include "bind/python/graph_object.h"
#include "bind/python/profiler.h"
#include "bind/python/status.h"
#include "bind/python/unlocked.h"
#include "bind/value/convert.h"
#include "bind/value/numpy_array.h"
#include "bind/value/tensor_object.h"
#include "op/resource.h"
#include "runtime/executable.h"
#include "runtime/function_caller.h"
#include "runtime/partial_run.h"
#include "runtime/placement.h"
#include "runtime/stateful_kernels.h"
#include "runtime/waiting_steps.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

// The ids of fetches, targets and feeds, with zeros between.
using PlanKey = absl::InlinedVector<uint64_t, 8>;

nb::object ToNumpy(Tensor t) {
  // Resources and variants have no NumPy form.
  if (!IsPlain(t.dtype()) && t.dtype() != DType::kString) {
    return WrapObject(Value(std::move(t)));
  }
  nb::object owner = WrapObject(Value(t));
  PyObject* array = TensorToNumpy(t, owner.ptr());
  if (array == nullptr) nb::raise_python_error();
  return nb::steal(array);
}

class SessionCore {
 public:
  // Nodes whose device is not there run on the CPU.
  bool soft_placement = false;
  int processors = 1;  // that nodes may name
  // Threads of one op, and steps that run side by side; 0: the default.
  int intra_op = 0, inter_op = 0;

  // The session's Python object keeps that of the graph.
  explicit SessionCore(PyGraph& g)
      : graph_(g.graph()),
        builder_(g.builder()),
        caller_(graph_->library()),
        kernels_(graph_.get()) {
    services_.resources = &resources_;
    services_.functions = &caller_;
  }

  // One tensor fetched with tensors fed; NotImplemented for all else.
  [[gnu::hot]] nb::object RunOne(nb::handle fetch, nb::handle feeds) {
    // Only what needs no Python: anything else takes the long road, which also
    // words the errors.
    if (Py_TYPE(fetch.ptr()) != symbolic_type) return NotMine();
    const Value& wanted = ValueOf(fetch.ptr());
    if (wanted.graph() != graph_) return NotMine();
    // The same key as RunMany's for the same call, so that both share plans.
    PlanKey plan_key = {wanted.id(), 0, 0};
    absl::InlinedVector<const Value*, 4> fed;  // the caller's dict holds them
    absl::InlinedVector<Tensor, 4> tensors;
    if (!feeds.is_none()) {
      if (!PyDict_CheckExact(feeds.ptr())) return NotMine();
      PyObject *key, *value;
      Py_ssize_t at = 0;
      // Nothing in the loop runs Python code that could change the dict.
      while (PyDict_Next(feeds.ptr(), &at, &key, &value)) {
        if (Py_TYPE(key) != symbolic_type || !IsArray(value)) return NotMine();
        const Value& v = ValueOf(key);
        DType have = ArrayDType(value);
        // A cast is Python's to decide.
        if (v.graph() != graph_ || have != v.dtype()) return NotMine();
        Tensor t;
        if (!ArrayToTensor(value, have, &t)) nb::raise_python_error();
        // Shapes that do not fit are refused by Python, with names.
        if (!v.shape().CompatibleWith(t.shape())) return NotMine();
        fed.push_back(&v);
        plan_key.push_back(v.id());
        tensors.push_back(std::move(t));
      }
    }
    std::shared_ptr<Executable> plan = Find(plan_key);
    if (!plan) {
      // Within branches and loops it is not to be fetched.
      if (builder_.OutputContextOf(*wanted.node())) return NotMine();
      std::vector<Value> values;
      for (const Value* v : fed) values.push_back(*v);
      plan = Make(plan_key, {&wanted, 1}, {}, values);
    }
    // Opened at each run, and runs may be short: looking at the token each time
    // would cost them.
    const StopScope closing(&closing_, /*paced=*/true);
    std::vector<Tensor> results = Run(*plan, absl::MakeSpan(tensors), inter_op);
    return ToNumpy(std::move(results[0]));
  }

  // run(fetches, targets, feeds, values): tensors and nodes of the graph;
  // values are eager tensors. A list of arrays, and the run's steps, a
  // serialised StepStats, when `trace` asks for them. DeadlineExceeded after
  // timeout_ms (0: never). `threads`: in place of inter_op, if not 0; below:
  // the default.
  nb::tuple RunMany(nb::sequence fetches, nb::sequence targets,
                    nb::sequence feeds, nb::sequence values, int64_t timeout_ms,
                    bool trace, int threads) {
    const std::vector<Value> wanted = Mine(fetches), fed = Mine(feeds);
    const std::vector<Node*> nodes = NodesOf(targets);
    const PlanKey key = KeyOf(wanted, nodes, fed);
    std::vector<Tensor> tensors = TensorsOf(values, fed.size());
    const StopScope closing(&closing_, /*paced=*/true);
    std::optional<Deadline> deadline;
    if (timeout_ms > 0) deadline.emplace(timeout_ms);
    // Behind the deadline: making a plan may take long, and counts.
    std::shared_ptr<Executable> plan = Find(key);
    if (!plan) plan = Make(key, wanted, nodes, fed);
    std::optional<timeline::OfThisThread> events;
    if (trace) events.emplace();
    std::vector<Tensor> results =
        Run(*plan, absl::MakeSpan(tensors), threads != 0 ? threads : inter_op);
    const nb::bytes steps =
        events ? StepStatsOf(events->events(), graph_.get(), processors)
               : nb::bytes("", 0);
    nb::list out;
    for (Tensor& t : results) out.append(ToNumpy(std::move(t)));
    return nb::make_tuple(out, steps);
  }

  // The name of a run in steps.
  std::string SetUpPartialRun(nb::sequence fetches, nb::sequence targets,
                              nb::sequence feeds) {
    StatusOr<std::string> name = partial_runs_.SetUp(
        {EdgesOf(Mine(feeds)), EdgesOf(Mine(fetches)), NodesOf(targets)});
    if (!name.ok()) ThrowStatus(name.status());
    return *std::move(name);
  }

  // A step of it: what is fetched, as arrays.
  nb::list RunPart(const std::string& name, nb::sequence fetches,
                   nb::sequence feeds, nb::sequence values) {
    const GraphRequest step = {
        EdgesOf(Mine(feeds)), EdgesOf(Mine(fetches)), {}};
    std::vector<Tensor> given = TensorsOf(values, step.feeds.size());
    const StopScope closing(&closing_, /*paced=*/true);
    std::vector<Tensor> results;
    // Without the GIL, as steps of one run wait for each other.
    RunUnlocked([&] {
      return partial_runs_.Step(
          name, step, std::move(given),
          [this](const GraphRequest& run, std::vector<Tensor> known) {
            return Compute(run, std::move(known));
          },
          &results);
    });
    nb::list out;
    for (Tensor& t : results) out.append(ToNumpy(std::move(t)));
    return out;
  }

  // Forgets the state in a container: "" is that of nodes that name none.
  void Reset(const std::string& container) {
    resources_.ClearContainer(container);
  }

  // Runs that are under way, perhaps waiting at a queue, end with Cancelled.
  void Close() {
    closing_.Cancel();
    plans_.clear();
    partial_runs_.Clear();
    resources_.Clear();
  }

 private:
  static nb::object NotMine() { return nb::borrow(Py_NotImplemented); }

  std::vector<Value> Mine(nb::sequence tensors) {
    std::vector<Value> out;
    for (nb::handle o : tensors) {
      out.push_back(ValueOrHandle(o));
      if (!out.back().is_symbolic() || out.back().graph() != graph_) {
        throw nb::value_error("a tensor of another graph");
      }
    }
    return out;
  }

  std::vector<Node*> NodesOf(nb::sequence targets) {
    std::vector<Node*> nodes;
    for (nb::handle o : targets) {
      NodeRef n = nb::cast<NodeRef>(o);
      if (n.graph != graph_) throw nb::value_error("a node of another graph");
      nodes.push_back(n.node);
    }
    return nodes;
  }

  static std::vector<Edge> EdgesOf(const std::vector<Value>& values) {
    std::vector<Edge> edges;
    for (const Value& v : values) edges.push_back(EdgeOf(v));
    return edges;
  }

  // Of a sequence of eager tensors.
  static std::vector<Tensor> TensorsOf(nb::sequence values, size_t count) {
    std::vector<Tensor> tensors;
    for (nb::handle o : values) {
      Value v = ValueOrHandle(o);
      if (v.is_symbolic()) throw nb::type_error("a feed's value is eager");
      tensors.push_back(v.tensor());
    }
    if (tensors.size() != count) throw nb::value_error("a value a feed");
    return tensors;
  }

  static PlanKey KeyOf(absl::Span<const Value> fetches,
                       absl::Span<Node* const> targets,
                       absl::Span<const Value> feeds) {
    PlanKey key;
    for (const Value& v : fetches) key.push_back(v.id());
    key.push_back(0);
    // Ids of nodes begin with 0, which separates the parts of a key.
    for (const Node* n : targets) key.push_back(n->id() + 1);
    key.push_back(0);
    for (const Value& v : feeds) key.push_back(v.id());
    return key;
  }

  // A run of a step in parts, for a caller without the GIL.
  StatusOr<std::vector<Tensor>> Compute(const GraphRequest& run,
                                        std::vector<Tensor> feeds) {
    const nb::gil_scoped_acquire gil;
    std::vector<Value> fetched, fed;
    for (const Edge& e : run.fetches) fetched.push_back(graph_->Output(e));
    for (const Edge& e : run.feeds) fed.push_back(graph_->Output(e));
    const PlanKey key = KeyOf(fetched, run.targets, fed);
    std::shared_ptr<Executable> plan = Find(key);
    if (!plan) {
      HR_ASSIGN_OR_RETURN(plan, TryMake(key, fetched, run.targets, fed));
    }
    return TryRun(*plan, absl::MakeSpan(feeds), inter_op);
  }

  [[gnu::hot]] std::shared_ptr<Executable> Find(const PlanKey& key) {
    // Training loops ask for the same again and again.
    if (last_ && key == last_key_) return last_;
    auto it = plans_.find(key);
    if (it == plans_.end()) return nullptr;
    last_key_ = key;
    last_ = it->second;
    return last_;
  }

  std::shared_ptr<Executable> Make(const PlanKey& key,
                                   absl::Span<const Value> fetches,
                                   absl::Span<Node* const> targets,
                                   absl::Span<const Value> feeds) {
    auto made = TryMake(key, fetches, targets, feeds);
    if (!made.ok()) ThrowStatus(made.status());
    return *std::move(made);
  }
  StatusOr<std::shared_ptr<Executable>> TryMake(const PlanKey& key,
                                                absl::Span<const Value> fetches,
                                                absl::Span<Node* const> targets,
                                                absl::Span<const Value> feeds) {
    std::vector<Edge> in, out;
    for (const Value& v : feeds) in.push_back(EdgeOf(v));
    for (const Value& v : fetches) out.push_back(EdgeOf(v));
    // Once a plan, as the devices of a graph's nodes that run do not change.
    if (!soft_placement) {
      HR_RETURN_IF_ERROR(CheckPlacement(out, targets, processors));
    }
    const StatefulKernelsScope kept(&kernels_);
    HR_ASSIGN_OR_RETURN(last_, Executable::Make(*graph_, in, out, targets,
                                                graph_->library().get()));
    last_key_ = key;
    plans_[key] = last_;
    return last_;
  }

  std::vector<Tensor> Run(Executable& plan, absl::Span<Tensor> feeds,
                          int threads) {
    auto results = TryRun(plan, feeds, threads);
    if (!results.ok()) ThrowStatus(results.status());
    return *std::move(results);
  }
  StatusOr<std::vector<Tensor>> TryRun(Executable& plan,
                                       absl::Span<Tensor> feeds, int threads) {
    const InterOpScope overlapping(threads);
    const ScopedThreadLimit limit(
        intra_op > 0 ? intra_op : std::numeric_limits<int>::max());
    std::vector<Tensor> results;
    // Runs of several threads overlap; each has a workspace of its own.
    HR_RETURN_IF_ERROR(
        CallWithoutGil([&] { return plan.Run(services_, feeds, &results); }));
    return results;
  }

  // Guarded by the GIL, but for what guards itself: resources_, partial_runs_.
  std::shared_ptr<Graph> graph_;
  const GraphBuilder& builder_;
  LibraryCaller caller_;
  StatefulKernels kernels_;
  ResourceManager resources_;
  PartialRuns partial_runs_;
  CancellationToken closing_;
  RunServices services_;
  HashMap<PlanKey, std::shared_ptr<Executable>> plans_;
  PlanKey last_key_;
  std::shared_ptr<Executable> last_;
};

}  // namespace

void AddSession(nb::module_& m) {
  nb::class_<SessionCore>(m, "SessionCore")
      .def(nb::init<PyGraph&>())
      .def_rw("soft_placement", &SessionCore::soft_placement)
      .def_rw("processors", &SessionCore::processors)
      .def_rw("intra_op", &SessionCore::intra_op)
      .def_rw("inter_op", &SessionCore::inter_op)
      .def("run_one", &SessionCore::RunOne, nb::arg("fetch").none(),
           nb::arg("feeds").none())
      .def("run_many", &SessionCore::RunMany, nb::arg("fetches"),
           nb::arg("targets"), nb::arg("feeds"), nb::arg("values"),
           nb::arg("timeout_ms") = 0, nb::arg("trace") = false,
           nb::arg("threads") = 0)
      .def("partial_run_setup", &SessionCore::SetUpPartialRun)
      .def("partial_run", &SessionCore::RunPart)
      .def("reset", &SessionCore::Reset)
      .def("close", &SessionCore::Close);
  m.def("set_inter_op_threads", &InterOpScope::SetDefault);
}

}  // namespace headrace::bind
