#include "headrace/examples.h"

#include "cc/compose.h"

namespace headrace::tf::data {

using internal::Throw;

namespace {

Tensor Strings(const std::vector<std::string>& values) {
  return internal::Constant(
      internal::Access::ValueOf(Tensor::From(values)).tensor());
}

// What takes the place of a missing value, for the op: empty where none may.
Tensor DefaultOf(const std::string& name, const Feature& f) {
  const Tensor& given = f.default_value;
  if (given && given.dtype() != f.dtype) {
    Throw(ErrorCode::kInvalidArgument, "the default of feature " + name +
                                           " is " + DTypeName(given.dtype()) +
                                           ", not " + DTypeName(f.dtype));
  }
  if (f.is_sequence) {
    if (!given) {
      return f.dtype == DType::kString ? Tensor("")
                                       : internal::Number(f.dtype, 0);
    }
    if (given.shape().rank() == 0) return given;
  } else if (!given) {
    return Tensor::Copy(f.dtype, {0}, nullptr, 0);
  } else if (given.shape() == f.shape) {
    return given;
  }
  Throw(ErrorCode::kInvalidArgument,
        "the default of feature " + name + " has shape " +
            given.shape().ToString() + ", not " +
            (f.is_sequence ? TensorShape{} : f.shape).ToString());
}

void CheckFeature(const std::string& name, const Feature& f) {
  bool known = f.shape.known_rank;
  for (const int64_t n : f.shape.dims) known = known && n >= 0;
  const bool fits = f.dtype == DType::kFloat32 || f.dtype == DType::kInt64 ||
                    f.dtype == DType::kString;
  if (known && fits) return;
  Throw(ErrorCode::kInvalidArgument, "feature " + name + " cannot be " +
                                         DTypeName(f.dtype) + " of shape " +
                                         f.shape.ToString());
}

}  // namespace

Named ParseExamples(const Tensor& serialized,
                    const std::map<std::string, Feature>& features) {
  if (features.empty()) {
    Throw(ErrorCode::kInvalidArgument, "ParseExamples: no features");
  }
  std::vector<std::string> keys;
  std::vector<Tensor> defaults;
  std::vector<headrace::Shape> shapes;
  std::vector<headrace::DType> types;
  for (const auto& [name, f] : features) {
    CheckFeature(name, f);
    keys.push_back(name);
    defaults.push_back(DefaultOf(name, f));
    types.push_back(internal::Core(f.dtype));
    TensorShape shape = f.shape;
    // A first size of -1 tells the op that examples differ in their lengths.
    if (f.is_sequence) shape.dims.insert(shape.dims.begin(), -1);
    shapes.push_back(internal::Core(shape));
  }
  const Tensor none = Strings({});
  std::vector<Tensor> inputs = {serialized, none, none, Strings(keys), none};
  inputs.insert(inputs.end(), defaults.begin(), defaults.end());
  const std::vector<headrace::DType> no_types;
  const std::vector<Tensor> found =
      internal::OpAll("ParseExampleV2", inputs,
                      {{"Tdense", std::move(types)},
                       {"num_sparse", 0},
                       {"sparse_types", no_types},
                       {"ragged_value_types", no_types},
                       {"ragged_split_types", no_types},
                       {"dense_shapes", std::move(shapes)}});
  Named named;
  for (size_t i = 0; i < keys.size(); ++i) named.emplace(keys[i], found[i]);
  return named;
}

}  // namespace headrace::tf::data
