// What `headrace show` prints of each kind of source. All of them print text in
// the words of TensorFlow's own tools where there are any, or JSON.
#pragma once

#include "command/command.h"
#include "command/source.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace::command {

Status ShowModel(const Source& source, const Arguments& args, Output& out);
Status ShowCheckpoint(const Source& source, const Arguments& args, Output& out);
Status ShowGraph(const Source& source, const Arguments& args, Output& out);
Status ShowEvents(const Source& source, const Arguments& args, Output& out);
Status ShowRecords(const Source& source, const Arguments& args, Output& out);

// One signature: what it takes and gives, indented by `levels`.
void PrintSignature(const tensorflow::SignatureDef& signature, int levels,
                    Output& out);

}  // namespace headrace::command
