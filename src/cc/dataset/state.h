// What is behind a public dataset.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cc/compose.h"
#include "cc/trace.h"
#include "headrace/data.h"

namespace headrace::tf::internal {

// A function of tensors like those of `spec`, recorded.
Recorded Trace(const char* name, const data::ElementSpec& spec,
               const TensorFn& body);
// The inputs of an op: tensors, what its functions captured, and more.
std::vector<Tensor> Inputs(std::vector<Tensor> inputs,
                           const std::vector<const Recorded*>& functions,
                           const std::vector<Tensor>& more = {});
// The dtypes of what a function captured.
std::vector<headrace::DType> CapturedTypes(const Recorded& f);
// What tensors are like, with those names.
data::ElementSpec SpecOf(const data::Element& components,
                         std::vector<std::string> names = {});
// What both may be, component by component; throws for other dtypes.
data::ElementSpec Common(const data::ElementSpec& a,
                         const data::ElementSpec& b);

}  // namespace headrace::tf::internal

namespace headrace::tf::data {

struct Dataset::State {
  Tensor variant;
  ElementSpec spec;
  // Of components that are datasets themselves: what their elements are like.
  std::vector<ElementSpec> inner;
  // Functions and resources that live as long as it does.
  std::vector<std::shared_ptr<const void>> held;

  static Dataset Make(State state);
};

}  // namespace headrace::tf::data

namespace headrace::tf::internal {

// The attributes output_types and output_shapes.
AttrMap AttrsOf(const data::ElementSpec& spec, AttrMap attrs = {});
// int64 and bool scalars.
Tensor Int64(int64_t v);
Tensor Bool(bool v);

}  // namespace headrace::tf::internal
