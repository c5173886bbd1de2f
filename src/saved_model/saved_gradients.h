// Gradients that nodes of a SavedModel's functions name, as the functions that
// the file has for them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autodiff/gradient_function.h"
#include "saved_model/import_functions.h"
#include "tensorflow/core/protobuf/saved_object_graph.pb.h"

namespace headrace {

// What a gradient function takes and gives, as files say it.
void DescribeGradient(const GradientFunction& gradient, int num_outputs,
                      tensorflow::SavedConcreteFunction* saved);

// The tensor "node:0" of function `f` that a file names. DataLoss where there
// is none.
StatusOr<Value> TensorNamed(const FunctionPtr& f, const std::string& name);

// Registers the gradients of `made`, each for as long as one of the functions
// lives whose nodes name it. `value_of`: of an object, by number, what
// functions capture. Run once. DataLoss where they do not fit the nodes.
Status RegisterGradients(const ImportedFunctions& made,
                         const tensorflow::SavedObjectGraph& objects,
                         const std::function<StatusOr<Value>(int)>& value_of);

}  // namespace headrace
