// Functions that ops call, written anew for all rows: what the rules of calls,
// branches and loops share.
#pragma once

#include <vector>

#include "autodiff/written_function.h"
#include "vectorize/vectorize.h"

namespace headrace {

// `v` as rows of that kind: repeated, its list's elements repeated, or as it
// is. Unimplemented where there is no way.
StatusOr<Value> AsRows(const RowValue& v, Stacking rows, const Value& count);
// What holds values of either kind.
Stacking WiderOf(Stacking a, Stacking b);

// Arguments of a function that is to be written.
struct RowArgs {
  ArgTypes types;
  ArgHandles handles;
  std::vector<Stacking> rows;
  void Add(const RowValue& v);
};

// How `f` gives its results when its arguments are such; nothing is kept.
StatusOr<std::vector<Stacking>> RowsOfResults(const FunctionPtr& f,
                                              const RowArgs& args,
                                              const Value& count,
                                              const VectorizeOptions& options);
// `f` for all rows. Its last argument, behind those of `args`, is the count,
// its results are of the kinds `wanted`, and the last of them the count again
// where `hands_count_on`.
StatusOr<FunctionPtr> WriteForRows(const FunctionPtr& f, const RowArgs& args,
                                   const std::vector<Stacking>& wanted,
                                   const Value& count, bool hands_count_on,
                                   const VectorizeOptions& options);

// A loop that calls `f` for each row, with the same arguments.
StatusOr<FunctionPtr> WriteRowLoop(const FunctionPtr& f, const RowArgs& args,
                                   const Value& count);

}  // namespace headrace
