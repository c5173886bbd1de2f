// Structures of arguments, as SavedModels keep them, in Python's words.
#pragma once

#include <string>

#include "command/output.h"
#include "tensorflow/core/protobuf/struct.pb.h"

namespace headrace::command {

// As Python's repr: "(TensorSpec(shape=(2,), dtype=tf.float32, name='x'), 3)".
std::string StructureText(const tensorflow::StructuredValue& value);

// What one trace of a function is called with, as saved_model_cli prints it:
// `signature` is the pair of positional and named arguments.
void PrintTrace(int option, const tensorflow::StructuredValue& signature,
                Output& out);

}  // namespace headrace::command
