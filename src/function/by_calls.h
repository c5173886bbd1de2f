// Loops and branches whose functions somebody else calls than the engine, where
// a part of them runs elsewhere.
#pragma once

#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "op/attr.h"
#include "op/resolved_op.h"
#include "tensor/tensor.h"

namespace headrace {

// What a function gives of these inputs.
using CallFunctionBy =
    std::function<Status(const FuncRef& function, std::vector<Tensor> inputs,
                         std::vector<Tensor>* outputs)>;

// Runs a loop (OpRole::kLoop) turn by turn: its condition, then its body.
Status RunLoopByCalls(const ResolvedOp& op,
                      absl::Span<const Tensor* const> inputs,
                      const CallFunctionBy& call, std::vector<Tensor>* outputs);
// The branch (OpRole::kBranch) that its first input chooses.
Status RunBranchByCalls(const ResolvedOp& op,
                        absl::Span<const Tensor* const> inputs,
                        const CallFunctionBy& call,
                        std::vector<Tensor>* outputs);

}  // namespace headrace
