#include "distributed/eager/called_functions.h"

#include <vector>

namespace headrace::distributed {
namespace {

// Functions that are found, and whose bodies are yet to be looked at.
class Search {
 public:
  Search(const FunctionLibrary* library, FunctionsByName* all)
      : library_(library), all_(all) {}

  Status LookAt(const AttrMap& attrs) {
    for (const auto& [name, value] : attrs) {
      if (const FuncRef* one = std::get_if<FuncRef>(&value)) {
        HR_RETURN_IF_ERROR(LookUp(*one));
      } else if (const auto* list = std::get_if<std::vector<FuncRef>>(&value)) {
        for (const FuncRef& f : *list) HR_RETURN_IF_ERROR(LookUp(f));
      }
    }
    return OkStatus();
  }
  Status LookAt(const Graph& graph) {
    for (const std::string& name : graph.library()->Names()) {
      if (FunctionPtr f = graph.library()->Find(name)) Add(name, std::move(f));
    }
    for (int i = 0; i < graph.num_nodes(); ++i) {
      HR_RETURN_IF_ERROR(LookAt(graph.node(i)->op().attrs()));
    }
    return OkStatus();
  }
  Status Finish() {
    while (!open_.empty()) {
      const FunctionPtr f = std::move(open_.back());
      open_.pop_back();
      HR_RETURN_IF_ERROR(LookAt(*f->body));
    }
    return OkStatus();
  }

 private:
  Status LookUp(const FuncRef& called) {
    if (called.name.empty() || all_->contains(called.name)) return OkStatus();
    HR_ASSIGN_OR_RETURN(FunctionPtr f, FindFunction(library_, called.name));
    Add(called.name, std::move(f));
    return OkStatus();
  }
  void Add(const std::string& name, FunctionPtr f) {
    if (all_->emplace(name, f).second) open_.push_back(std::move(f));
  }

  const FunctionLibrary* const library_;
  FunctionsByName* const all_;
  std::vector<FunctionPtr> open_;
};

}  // namespace

Status AddNamed(const AttrMap& attrs, const FunctionLibrary* library,
                FunctionsByName* all) {
  Search search(library, all);
  HR_RETURN_IF_ERROR(search.LookAt(attrs));
  return search.Finish();
}

Status AddCalled(const Graph& graph, const FunctionLibrary* library,
                 FunctionsByName* all) {
  Search search(library, all);
  HR_RETURN_IF_ERROR(search.LookAt(graph));
  return search.Finish();
}

}  // namespace headrace::distributed
