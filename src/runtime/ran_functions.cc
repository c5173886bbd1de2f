#include "runtime/ran_functions.h"

#include <algorithm>
#include <optional>

#include "base/fork_mutex.h"
#include "base/hash_map.h"
#include "base/mutex.h"
#include "graph/attr_proto.h"
#include "graph/export.h"
#include "runtime/executable.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

constexpr size_t kMostFunctions = 1000;
constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

struct RanFunctions {
  ProcessMutex mutex;
  std::optional<std::vector<FunctionPtr>> kept ABSL_GUARDED_BY(mutex);
};
RanFunctions& Ran() {
  static auto* ran = new RanFunctions;
  return *ran;
}

void SetTypeAndIndex(DType dtype, int64_t index, tensorflow::NodeDef* node) {
  auto& attrs = *node->mutable_attr();
  attrs["T"].set_type(static_cast<tensorflow::DataType>(dtype));
  attrs["index"].set_i(index);
}

// A node that stands for a result.
void AddResult(const std::string& name, const std::string& input, DType dtype,
               int index, tensorflow::GraphDef* def) {
  tensorflow::NodeDef* node = def->add_node();
  node->set_name(name);
  node->set_op("_Retval");
  node->add_input(input);
  SetTypeAndIndex(dtype, index, node);
}

std::string ResultNode(const Function& f, size_t i) {
  return absl::StrCat(i < f.result_names.size() ? f.result_names[i]
                                                : absl::StrCat("output_", i),
                      "_RetVal");
}

std::string OutputName(const std::string& node, int index) {
  return index == 0 ? node : absl::StrCat(node, ":", index);
}

}  // namespace

void FunctionRunNote::Begin(FunctionPtr f) {
  function_ = std::move(f);
  begin_ = timeline::Now();
  if (!function_) return;
  RanFunctions& ran = Ran();
  MutexLock lock(ran.mutex);
  if (!ran.kept || ran.kept->size() >= kMostFunctions) return;
  if (std::find(ran.kept->begin(), ran.kept->end(), function_) ==
      ran.kept->end()) {
    ran.kept->push_back(function_);
  }
}

void FunctionRunNote::End() const noexcept {
  timeline::RecordSpan(timeline::Event::Kind::kFunction, function_->name, {},
                       begin_);
}

void CollectRanFunctions() {
  RanFunctions& ran = Ran();
  std::vector<FunctionPtr> old;  // destroyed without the lock
  MutexLock lock(ran.mutex);
  if (ran.kept) {
    old.swap(*ran.kept);
  } else {
    ran.kept.emplace();
    timeline::listeners.fetch_add(1, std::memory_order_relaxed);
  }
}

std::vector<FunctionPtr> TakeRanFunctions() {
  RanFunctions& ran = Ran();
  MutexLock lock(ran.mutex);
  if (!ran.kept) return {};
  std::vector<FunctionPtr> taken = *std::move(ran.kept);
  ran.kept.reset();
  timeline::listeners.fetch_sub(1, std::memory_order_relaxed);
  return taken;
}

Status TracedGraph(const Function& f, tensorflow::GraphDef* def) {
  HR_RETURN_IF_ERROR(ExportGraph(*f.body, {}, def));
  HashMap<std::string, int> args;
  for (size_t i = 0; i < f.args.size(); ++i) {
    args[f.args[i]->name()] = static_cast<int>(i);
  }
  for (tensorflow::NodeDef& node : *def->mutable_node()) {
    const auto arg = args.find(node.name());
    if (arg == args.end()) continue;
    node.set_op("_Arg");
    node.clear_attr();
    SetTypeAndIndex(f.args[arg->second]->output_type(0), arg->second, &node);
  }
  for (size_t i = 0; i < f.results.size(); ++i) {
    const Edge& e = f.results[i];
    AddResult(ResultNode(f, i), OutputName(e.node->name(), e.index),
              e.node->output_type(e.index), static_cast<int>(i), def);
  }
  return OkStatus();
}

Status PlannedGraph(const FunctionPtr& f, tensorflow::GraphDef* def) {
  HR_ASSIGN_OR_RETURN(std::shared_ptr<Executable> plan,
                      ExecutableOf(f, nullptr));
  return plan->Describe(*f, def);
}

// Its steps as nodes, for people to look at.
Status Executable::Describe(const Function& f,
                            tensorflow::GraphDef* def) const {
  std::vector<std::string> names(slots_.size());
  const auto add = [&](const std::string& name, const std::string& op) {
    tensorflow::NodeDef* node = def->add_node();
    node->set_name(name);
    node->set_op(op);
    node->set_device(kCpu);
    return node;
  };
  for (size_t i = 0; i < feeds_.size(); ++i) {
    names[feeds_[i]] = f.args[i]->name();
    SetTypeAndIndex(slots_[feeds_[i]].dtype, static_cast<int64_t>(i),
                    add(f.args[i]->name(), "_Arg"));
  }
  const auto name_of = [&](ValueId v) -> const std::string& {
    if (names[v].empty()) {
      names[v] = absl::StrCat("constant_", v);
      (*add(names[v], "Constant")->mutable_attr())["dtype"].set_type(
          static_cast<tensorflow::DataType>(slots_[v].dtype));
    }
    return names[v];
  };
  // What a plan has written out twice, functions and turns, comes with the same
  // names.
  HashSet<std::string> taken;
  for (const std::vector<Step>* some : {&view_steps_, &steps_}) {
    for (const Step& s : *some) {
      std::string name = s.name;
      for (int i = 1; !taken.insert(name).second; ++i) {
        name = absl::StrCat(s.name, "_again_", i);
      }
      tensorflow::NodeDef node;
      node.set_name(name);
      node.set_op(s.op->name());
      node.set_device(kCpu);
      for (ValueId v : s.inputs) node.add_input(name_of(v));
      for (size_t o = 0; o < s.outputs.size(); ++o) {
        names[s.outputs[o]] = OutputName(name, static_cast<int>(o));
      }
      *def->add_node() = std::move(node);
    }
  }
  for (size_t i = 0; i < fetches_.size(); ++i) {
    const ValueId v = fetches_[i];
    AddResult(ResultNode(f, i), name_of(v), slots_[v].dtype,
              static_cast<int>(i), def);
  }
  return OkStatus();
}

}  // namespace headrace
