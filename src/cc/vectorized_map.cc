#include "headrace/vectorized_map.h"

#include "autodiff/function_gradient.h"
#include "cc/trace.h"
#include "vectorize/vectorize.h"

namespace headrace::tf {

using internal::Access;
using internal::Check;

std::vector<Tensor> VectorizedMap(const Function::Body& fn,
                                  const std::vector<Tensor>& elems,
                                  const VectorizedMapOptions& options) {
  MappedRows rows = Check(RowsOf(internal::ValuesOf(elems)));
  std::vector<internal::ArgSpec> specs;
  for (const RowValue& v : rows.args) {
    specs.push_back(
        {v.value.dtype(), v.row_shape(), v.value.shared_handle_data()});
  }
  const internal::Recorded body = internal::Record("loop_body", specs, fn);
  internal::TellCapturesRead(body.captures);
  for (const Value& v : body.captures) rows.args.push_back({v});
  VectorizeOptions how;
  how.loops = options.loops;
  how.warn = options.warn;
  const FunctionPtr f =
      Check(FunctionForRows(body.function, rows.args, rows.count, how));
  std::vector<Value> inputs;
  for (const RowValue& v : rows.args) inputs.push_back(v.value);
  inputs.push_back(rows.count);
  std::vector<Tensor> results;
  for (Value& v : Check(CallDifferentiably(f, inputs, nullptr))) {
    results.push_back(Access::Wrap(std::move(v)));
  }
  return results;
}

}  // namespace headrace::tf
