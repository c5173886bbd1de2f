// Bodies of C++ branches and loops, over structures and over values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cc/structure.h"
#include "cc/trace.h"
#include "headrace/control_flow.h"

namespace headrace::tf::internal {

// A scalar of a tensor with one element; kInvalidArgument, naming `what`, else.
Tensor ScalarOf(const char* what, const Tensor& t);

// The same structure with other tensors in it.
Tokens WithTensors(TokenSpan tokens, absl::Span<const Value> tensors);
// A tuple of structures.
Tokens TupleOf(std::initializer_list<TokenSpan> items);
// Behind the structure that begins at `at`.
size_t BehindStructure(TokenSpan tokens, size_t at);
// The first difference in structure, dtypes or values; empty for none.
std::string Difference(TokenSpan a, TokenSpan b);

// What `body` writes when it reads these tokens and values.
Signature RunBody(const BodyFn& body, TokenSpan tokens,
                  absl::Span<const Value> args);
// Puts a result together.
void HandOver(TokenSpan tokens, absl::Span<const Value> values, Taken result);

// What a branch gives: a body without arguments.
struct Branch {
  std::string name;  // what its function is named after
  std::unique_ptr<BodyGraph> graph;
};
// Emits If (of a then and an else branch) or Case, stateless where the branches
// are. The results have the branches' dtypes, and the shapes that all agree on.
enum class Choice { kIf, kCase };
std::vector<Value> EmitBranches(Choice choice, const Tensor& selector,
                                const std::vector<Branch>& branches);

// A While op over `inputs`, of which `shapes` holds in every turn: what they
// are after the last. `cond` and `body` take as many, `body` gives as many.
std::vector<Value> EmitWhile(const std::string& name,
                             const std::vector<Value>& inputs,
                             const std::vector<headrace::Shape>& shapes,
                             const ValuesFn& cond, const ValuesFn& body,
                             int64_t parallel_iterations = 10);

}  // namespace headrace::tf::internal
