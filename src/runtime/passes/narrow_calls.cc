// Branches and loops of whose results only some are read do without what the
// others alone need.
#include <algorithm>
#include <numeric>

#include "graph/graph.h"
#include "op/registry.h"
#include "runtime/program.h"

namespace headrace {
namespace {

using Places = std::vector<int>;  // of arguments or results, in order

Places All(size_t count) {
  Places all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

template <typename List>
List Picked(const List& from, const Places& places) {
  List picked;
  for (int i : places) picked.push_back(from[i]);
  return picked;
}

// `f` with only these arguments and results, made once and kept with `f`. Their
// names are left out: plans ask for none.
FunctionPtr NarrowFunction(const FunctionPtr& f, const Places& args,
                           const Places& results) {
  auto narrow = std::make_shared<Function>();
  narrow->args = Picked(f->args, args);
  narrow->results = Picked(f->results, results);
  MutexLock lock(f->narrowed_mutex);
  for (const FunctionPtr& known : f->narrowed) {
    if (known->args == narrow->args && known->results == narrow->results) {
      return known;
    }
  }
  narrow->name = FunctionLibrary::NewName(f->name);
  narrow->body = f->body;
  narrow->control_outputs = f->control_outputs;
  GlobalFunctions().Add(narrow).IgnoreError();  // nothing else has the name
  std::vector<FunctionPtr> all = f->narrowed;
  all.push_back(narrow);
  f->narrowed = std::move(all);  // in one step, for forks
  return narrow;
}

// Which arguments these results and the function's effects need.
std::vector<bool> NeededArguments(const Function& f, const Places& results) {
  HashSet<const Node*> seen;
  std::vector<const Node*> open;
  const auto visit = [&](const Node* n) {
    if (seen.insert(n).second) open.push_back(n);
  };
  for (int i : results) visit(f.results[i].node);
  for (const Node* n : f.control_outputs) visit(n);
  while (!open.empty()) {
    const Node* n = open.back();
    open.pop_back();
    for (const Edge& e : n->inputs()) {
      if (e.node) visit(e.node);
    }
    for (const Node* c : n->control_inputs()) visit(c);
  }
  std::vector<bool> needed;
  for (const Node* arg : f.args) needed.push_back(seen.contains(arg));
  return needed;
}

class CallNarrower {
 public:
  // `read`: which outputs.
  CallNarrower(Call* call, const FunctionLibrary* library,
               std::vector<bool> read)
      : call_(*call),
        library_(library),
        read_(std::move(read)),
        attrs_(call->op->attrs()) {}

  // Leaves the call as it is where nothing can be left out, and where it is not
  // as it should be: who makes it says so.
  Status Narrow() {
    if (!CheckCall(*call_.op, library_).ok()) return OkStatus();
    return call_.op->def().Is(OpRole::kLoop) ? NarrowLoop() : NarrowBranches();
  }

 private:
  Places Read() const {
    Places read;
    for (size_t i = 0; i < read_.size(); ++i) {
      if (read_[i]) read.push_back(static_cast<int>(i));
    }
    return read;
  }

  Status NarrowBranches() {
    const Places kept = Read();
    bool found = true;
    for (const auto& [name, value] : call_.op->attrs()) {
      AttrValue narrow = value;
      if (auto* f = std::get_if<FuncRef>(&narrow)) {
        found = found && NarrowRef(f, kept);
      } else if (auto* all = std::get_if<std::vector<FuncRef>>(&narrow)) {
        for (FuncRef& f : *all) found = found && NarrowRef(&f, kept);
      }
      attrs_.Set(name, std::move(narrow));
    }
    if (!found) return OkStatus();
    return Replace("Tout", All(call_.inputs.size()), kept);
  }

  Status NarrowLoop() {
    const FuncRef& cond = call_.op->attr<FuncRef>("cond");
    const FuncRef& body = call_.op->attr<FuncRef>("body");
    StatusOr<FunctionPtr> test = FindFunction(library_, cond.name);
    StatusOr<FunctionPtr> turn = FindFunction(library_, body.name);
    if (!test.ok() || !turn.ok()) return OkStatus();
    // A variable is kept for who reads it, the condition, and other variables.
    Keep(NeededArguments(**test, {0}));
    while (Keep(NeededArguments(**turn, Read()))) {
    }
    const Places kept = Read();
    if (kept.size() == read_.size() || kept.empty()) return OkStatus();
    const FunctionPtr narrow_test = NarrowFunction(*test, kept, {0});
    const FunctionPtr narrow_turn = NarrowFunction(*turn, kept, kept);
    attrs_.Set("cond", FuncRef{narrow_test->name, cond.attrs});
    attrs_.Set("body", FuncRef{narrow_turn->name, body.attrs});
    return Replace("T", kept, kept);
  }

  // True where some more are kept now.
  bool Keep(const std::vector<bool>& needed) {
    bool more = false;
    for (size_t i = 0; i < read_.size(); ++i) {
      more = more || (needed[i] && !read_[i]);
      read_[i] = read_[i] || needed[i];
    }
    return more;
  }

  // False where there is no such function.
  bool NarrowRef(FuncRef* ref, const Places& results) {
    StatusOr<FunctionPtr> f = FindFunction(library_, ref->name);
    if (!f.ok()) return false;
    const Places args = All((*f)->args.size());
    ref->name = NarrowFunction(*f, args, results)->name;
    return true;
  }

  // The call is one of these inputs and results; `types` names the attribute
  // that says what they are.
  Status Replace(const char* types, const Places& inputs,
                 const Places& results) {
    attrs_.Set(types,
               Picked(call_.op->attr<std::vector<DType>>(types), results));
    const auto* shapes = attrs_.Get<std::vector<Shape>>("output_shapes");
    if (shapes && shapes->size() == read_.size()) {
      attrs_.Set("output_shapes", Picked(*shapes, results));
    }
    std::vector<DType> in;
    for (int i : inputs) in.push_back(call_.op->input_types()[i]);
    HR_ASSIGN_OR_RETURN(call_.op,
                        ResolveOp(call_.op->def(), in, std::move(attrs_)));
    call_.inputs = Picked(call_.inputs, inputs);
    call_.outputs = Picked(call_.outputs, results);
    return OkStatus();
  }

  Call& call_;
  const FunctionLibrary* const library_;
  std::vector<bool> read_;
  AttrMap attrs_;
};

}  // namespace

Status NarrowCalls(Program& p, const FunctionLibrary* library) {
  std::vector<bool> read(p.values.size());
  for (ValueId v : p.fetches) read[v] = true;
  // From the end, so that what a narrowed call does not need is not read.
  for (auto call = p.calls.rbegin(); call != p.calls.rend(); ++call) {
    std::vector<bool> own;
    for (ValueId v : call->outputs) own.push_back(call->whole || read[v]);
    const bool some = std::find(own.begin(), own.end(), true) != own.end();
    if (!some && !call->effect) continue;
    const OpDef& def = call->op->def();
    if ((def.Is(OpRole::kBranch) || def.Is(OpRole::kLoop)) &&
        std::find(own.begin(), own.end(), false) != own.end()) {
      HR_RETURN_IF_ERROR(CallNarrower(&*call, library, own).Narrow());
    }
    for (ValueId v : call->inputs) read[v] = true;
  }
  return OkStatus();
}

}  // namespace headrace
