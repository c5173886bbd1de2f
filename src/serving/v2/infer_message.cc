#include "serving/v2/infer_message.h"

#include <utility>

#include "serving/v2/datatypes.h"

namespace headrace::serving {
namespace {

using inference::InferTensorContents;
using inference::ModelInferRequest;
using inference::ModelInferResponse;
using InputMessage = ModelInferRequest::InferInputTensor;
using ParameterMap =
    google::protobuf::Map<std::string, inference::InferParameter>;

Status RefuseParameters(const ParameterMap& parameters, StringView whose) {
  for (const auto& [name, value] : parameters) {
    return InvalidArgument(whose, ": the parameter '", name,
                           "' is not supported");
  }
  return OkStatus();
}

Status ReadParameters(const ParameterMap& parameters, ModelSpec* spec) {
  for (const auto& [name, value] : parameters) {
    if (name != kSignatureParameter) {
      return InvalidArgument("the parameter '", name, "' is not supported");
    }
    if (value.parameter_choice_case() !=
        inference::InferParameter::kStringParam) {
      return InvalidArgument("the parameter '", name, "' is to be a string");
    }
    spec->set_signature_name(value.string_param());
  }
  return OkStatus();
}

// How many elements each field has, for messages and for who looks whether
// there are others.
int ElementsOf(const InferTensorContents& c) {
  return c.bool_contents_size() + c.int_contents_size() +
         c.int64_contents_size() + c.uint_contents_size() +
         c.uint64_contents_size() + c.fp32_contents_size() +
         c.fp64_contents_size() + c.bytes_contents_size();
}

template <typename T, typename Field>
Status TakeElements(const Field& field, StringView what, Tensor* t) {
  if (field.size() != t->num_elements()) {
    return InvalidArgument(what, " has ", field.size(), " elements of ",
                           DatatypeOf(t->dtype()), ", where shape ", t->shape(),
                           " has ", t->num_elements());
  }
  T* out = t->data<T>();
  for (int i = 0; i < field.size(); ++i) {
    const auto& value = field.Get(i);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (!std::in_range<T>(value)) {
        return InvalidArgument(what, ": ", value, " is no ",
                               DatatypeOf(t->dtype()));
      }
    }
    out[i] = static_cast<T>(value);
  }
  return OkStatus();
}

Status TakeContents(const InferTensorContents& c, StringView what, Tensor* t) {
  switch (t->dtype()) {
    case DType::kBool:
      return TakeElements<bool>(c.bool_contents(), what, t);
    case DType::kInt8:
      return TakeElements<int8_t>(c.int_contents(), what, t);
    case DType::kInt16:
      return TakeElements<int16_t>(c.int_contents(), what, t);
    case DType::kInt32:
      return TakeElements<int32_t>(c.int_contents(), what, t);
    case DType::kInt64:
      return TakeElements<int64_t>(c.int64_contents(), what, t);
    case DType::kUint8:
      return TakeElements<uint8_t>(c.uint_contents(), what, t);
    case DType::kUint16:
      return TakeElements<uint16_t>(c.uint_contents(), what, t);
    case DType::kUint32:
      return TakeElements<uint32_t>(c.uint_contents(), what, t);
    case DType::kUint64:
      return TakeElements<uint64_t>(c.uint64_contents(), what, t);
    case DType::kFloat:
      return TakeElements<float>(c.fp32_contents(), what, t);
    case DType::kDouble:
      return TakeElements<double>(c.fp64_contents(), what, t);
    default:
      return TakeElements<std::string>(c.bytes_contents(), what, t);
  }
}

StatusOr<Tensor> TensorFromContents(DType dtype, const Shape& shape,
                                    const InferTensorContents& contents,
                                    StringView what) {
  if (IsRawOnly(dtype)) {
    return InvalidArgument(what, ": ", DatatypeOf(dtype),
                           " comes in raw_input_contents alone");
  }
  // So that a short message cannot ask for much memory.
  const int elements = ElementsOf(contents);
  if (elements != shape.num_elements()) {
    return InvalidArgument(what, " has ", elements, " elements, where shape ",
                           shape, " has ", shape.num_elements());
  }
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, shape));
  HR_RETURN_IF_ERROR(TakeContents(contents, what, &t));
  return t;
}

StatusOr<NamedTensor> ReadInput(const InputMessage& input, std::string* raw) {
  NamedTensor made;
  made.name = input.name();
  const std::string what = absl::StrCat("input '", input.name(), "'");
  HR_RETURN_IF_ERROR(RefuseParameters(input.parameters(), what));
  HR_ASSIGN_OR_RETURN(const DType dtype,
                      DTypeOfDatatype(input.datatype(), what));
  HR_ASSIGN_OR_RETURN(const Shape shape,
                      ShapeOfSizes({input.shape().data(),
                                    static_cast<size_t>(input.shape().size())},
                                   what));
  if (raw == nullptr) {
    HR_ASSIGN_OR_RETURN(
        made.tensor, TensorFromContents(dtype, shape, input.contents(), what));
    return made;
  }
  if (ElementsOf(input.contents()) != 0) {
    return InvalidArgument(what,
                           " has contents, where raw_input_contents are given");
  }
  HR_ASSIGN_OR_RETURN(made.tensor,
                      TensorFromRaw(dtype, shape, std::move(*raw), what));
  return made;
}

template <typename T, typename Field>
void GiveElements(const Tensor& t, Field* field) {
  const auto elements = t.span<T>();
  field->Reserve(static_cast<int>(elements.size()));
  for (const T& value : elements) *field->Add() = value;
}

void GiveContents(const Tensor& t, InferTensorContents* c) {
  switch (t.dtype()) {
    case DType::kBool:
      return GiveElements<bool>(t, c->mutable_bool_contents());
    case DType::kInt8:
      return GiveElements<int8_t>(t, c->mutable_int_contents());
    case DType::kInt16:
      return GiveElements<int16_t>(t, c->mutable_int_contents());
    case DType::kInt32:
      return GiveElements<int32_t>(t, c->mutable_int_contents());
    case DType::kInt64:
      return GiveElements<int64_t>(t, c->mutable_int64_contents());
    case DType::kUint8:
      return GiveElements<uint8_t>(t, c->mutable_uint_contents());
    case DType::kUint16:
      return GiveElements<uint16_t>(t, c->mutable_uint_contents());
    case DType::kUint32:
      return GiveElements<uint32_t>(t, c->mutable_uint_contents());
    case DType::kUint64:
      return GiveElements<uint64_t>(t, c->mutable_uint64_contents());
    case DType::kFloat:
      return GiveElements<float>(t, c->mutable_fp32_contents());
    case DType::kDouble:
      return GiveElements<double>(t, c->mutable_fp64_contents());
    default:
      return GiveElements<std::string>(t, c->mutable_bytes_contents());
  }
}

}  // namespace

StatusOr<InferRequest> ReadInferMessage(ModelInferRequest* message) {
  InferRequest request;
  HR_ASSIGN_OR_RETURN(request.spec, SpecOfModel(message->model_name(),
                                                message->model_version()));
  HR_RETURN_IF_ERROR(ReadParameters(message->parameters(), &request.spec));
  const int raws = message->raw_input_contents_size();
  if (raws != 0 && raws != message->inputs_size()) {
    return InvalidArgument("there are ", message->inputs_size(), " inputs and ",
                           raws, " raw_input_contents");
  }
  for (int i = 0; i < message->inputs_size(); ++i) {
    HR_ASSIGN_OR_RETURN(
        NamedTensor input,
        ReadInput(
            message->inputs(i),
            raws == 0 ? nullptr : message->mutable_raw_input_contents(i)));
    request.inputs.push_back(std::move(input));
  }
  for (const auto& output : message->outputs()) {
    HR_RETURN_IF_ERROR(RefuseParameters(
        output.parameters(), absl::StrCat("output '", output.name(), "'")));
    request.outputs.push_back(output.name());
  }
  return request;
}

StatusOr<ModelInferResponse> WriteInferMessage(const std::string& id, bool raw,
                                               const InferAnswer& answer) {
  ModelInferResponse response;
  response.set_id(id);
  response.set_model_name(answer.spec.name());
  response.set_model_version(absl::StrCat(answer.spec.version().value()));
  for (const NamedTensor& output : answer.outputs) {
    raw = raw || IsRawOnly(output.tensor.dtype());
  }
  for (const NamedTensor& output : answer.outputs) {
    const Tensor& t = output.tensor;
    HR_ASSIGN_OR_RETURN(const size_t size,
                        RawSize(t, absl::StrCat("output '", output.name, "'")));
    auto* told = response.add_outputs();
    told->set_name(output.name);
    told->set_datatype(std::string(DatatypeOf(t.dtype())));
    for (const int64_t n : t.shape().dims()) told->add_shape(n);
    if (raw) {
      std::string* bytes = response.add_raw_output_contents();
      bytes->reserve(size);
      AppendRaw(t, bytes);
    } else {
      GiveContents(t, told->mutable_contents());
    }
  }
  return response;
}

}  // namespace headrace::serving
