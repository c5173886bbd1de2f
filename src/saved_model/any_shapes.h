// Functions of files for arguments that their traces did not have.
#pragma once

#include <memory>

#include "function/concrete_function.h"

namespace headrace {

// The same for arguments of any shapes. TensorFlow's calls of signatures ask
// for dtypes alone, and what does not fit is the operations' to say. Errors of
// shape rules, where no shapes fit.
StatusOr<std::shared_ptr<ConcreteFunction>> ForAnyShapes(
    const ConcreteFunction& f);

// Whether an argument has a shape that `f` is not made for.
bool HasOtherShapes(const ConcreteFunction& f, absl::Span<const Value> args);

// A call in a graph that captures nothing: what `f` captured becomes constants.
Status CallWithConstants(const ConcreteFunction& f,
                         absl::Span<const Value> args, ValueList* outputs);

}  // namespace headrace
