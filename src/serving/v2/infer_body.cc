#include "serving/v2/infer_body.h"

#include <limits>
#include <optional>

#include "absl/strings/numbers.h"
#include "serving/json/json_text.h"
#include "serving/json/predict_body.h"
#include "serving/json/tensor_reader.h"
#include "serving/v2/datatypes.h"

namespace headrace::serving {
namespace {

Status NotA(StringView what, const char* wanted, StringView value) {
  return InvalidArgument(what, " is to be ", wanted, ", not ",
                         JsonExcerpt(value));
}

StatusOr<std::string> StringIn(StringView value, StringView what) {
  if (JsonKindOf(value) != JsonKind::kString) {
    return NotA(what, "a string", value);
  }
  return JsonString(value);
}

StatusOr<bool> BoolIn(StringView value, StringView what) {
  const JsonKind kind = JsonKindOf(value);
  if (kind != JsonKind::kTrue && kind != JsonKind::kFalse) {
    return NotA(what, "true or false", value);
  }
  return kind == JsonKind::kTrue;
}

StatusOr<int64_t> IntegerIn(StringView value, StringView what) {
  int64_t number = 0;
  if (JsonKindOf(value) != JsonKind::kNumber ||
      !absl::SimpleAtoi(value, &number)) {
    return NotA(what, "a whole number", value);
  }
  return number;
}

// Calls f(key, reader) for each member of the object that `value` is: f goes
// past the member's value.
template <typename F>
Status ForMembers(JsonReader& at, StringView what, F f) {
  if (at.kind() != JsonKind::kObject) return NotA(what, "an object", at.Skip());
  for (bool more = at.Enter(); more; more = at.Next()) {
    HR_RETURN_IF_ERROR(f(JsonString(at.Key()), at));
  }
  return OkStatus();
}

// Calls f(reader) for each element of the list that `at` stands at: f goes past
// the element.
template <typename F>
Status ForElements(JsonReader at, StringView what, F f) {
  if (at.kind() != JsonKind::kArray) return NotA(what, "a list", at.Skip());
  for (bool more = at.Enter(); more; more = at.Next()) {
    HR_RETURN_IF_ERROR(f(at));
  }
  return OkStatus();
}

Status RefusedParameter(StringView whose, const std::string& name) {
  return InvalidArgument(whose, ": the parameter '", name,
                         "' is not supported");
}

// The shape that a list was given in, or all elements in one list.
StatusOr<Tensor> InShape(Tensor t, const Shape& shape, StringView what) {
  if (t.shape() == shape) return t;
  if (t.rank() != 1 || t.num_elements() != shape.num_elements()) {
    return InvalidArgument(
        what, " has data of shape ", t.shape(), ", which is neither its shape ",
        shape, " nor a list of ", shape.num_elements(), " elements");
  }
  return t.WithShape(shape);
}

// JSON's numbers are read as those of four bytes.
StatusOr<Tensor> ToUint16(const Tensor& wide, StringView what) {
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(DType::kUint16, wide.shape()));
  for (int64_t i = 0; i < wide.num_elements(); ++i) {
    const uint32_t value = wide.data<uint32_t>()[i];
    if (value > std::numeric_limits<uint16_t>::max()) {
      return InvalidArgument(what, ": ", value, " is no UINT16");
    }
    t.data<uint16_t>()[i] = static_cast<uint16_t>(value);
  }
  return t;
}

StatusOr<Tensor> TensorFromJson(JsonReader& at, DType dtype, const Shape& shape,
                                StringView what) {
  if (IsRawOnly(dtype)) {
    return InvalidArgument(what, ": ", DatatypeOf(dtype),
                           " comes as binary data alone");
  }
  const bool narrow = dtype == DType::kUint16;
  TensorRows rows(narrow ? DType::kUint32 : dtype);
  if (const Status s = rows.Add(at); !s.ok()) {
    return InvalidArgument(what, ": ", s.message());
  }
  Tensor t = rows.Finish();
  if (narrow) {
    HR_ASSIGN_OR_RETURN(t, ToUint16(t, what));
  }
  return InShape(std::move(t), shape, what);
}

// One of "inputs", as far as it has been read.
struct InputBody {
  std::string what = "an input";
  NamedTensor input;
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  StringView data;  // where it came before the type and shape; else empty
  bool has_data = false, read = false;
  std::optional<int64_t> binary_size;
};

Status ReadShape(StringView list, InputBody* in) {
  std::vector<int64_t> sizes;
  const std::string what = absl::StrCat(in->what, ": its shape");
  HR_RETURN_IF_ERROR(
      ForElements(JsonReader(list), what, [&](JsonReader& at) -> Status {
        HR_ASSIGN_OR_RETURN(const int64_t n, IntegerIn(at.Skip(), what));
        sizes.push_back(n);
        return OkStatus();
      }));
  HR_ASSIGN_OR_RETURN(in->shape, ShapeOfSizes(sizes, in->what));
  return OkStatus();
}

Status ReadInputParameters(JsonReader& at, InputBody* in) {
  return ForMembers(at, absl::StrCat(in->what, ": its parameters"),
                    [&](const std::string& name, JsonReader& value) -> Status {
                      if (name != "binary_data_size")
                        return RefusedParameter(in->what, name);
                      HR_ASSIGN_OR_RETURN(
                          in->binary_size,
                          IntegerIn(value.Skip(), "binary_data_size"));
                      return OkStatus();
                    });
}

Status ReadData(JsonReader& at, InputBody* in) {
  if (in->has_data) return InvalidArgument(in->what, " has data twice");
  in->has_data = true;
  if (!in->dtype || !in->shape) {
    in->data = at.Skip();
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(in->input.tensor,
                      TensorFromJson(at, *in->dtype, *in->shape, in->what));
  in->read = true;
  return OkStatus();
}

Status ReadMember(const std::string& key, JsonReader& at, InputBody* in) {
  if (key == "name") {
    HR_ASSIGN_OR_RETURN(in->input.name, StringIn(at.Skip(), "an input's name"));
    in->what = absl::StrCat("input '", in->input.name, "'");
  } else if (key == "shape") {
    return ReadShape(at.Skip(), in);
  } else if (key == "datatype") {
    HR_ASSIGN_OR_RETURN(
        const std::string name,
        StringIn(at.Skip(), absl::StrCat(in->what, ": its datatype")));
    HR_ASSIGN_OR_RETURN(in->dtype, DTypeOfDatatype(name, in->what));
  } else if (key == "parameters") {
    return ReadInputParameters(at, in);
  } else if (key == "data") {
    return ReadData(at, in);
  } else {
    return InvalidArgument(in->what, " has an unknown member '", key, "'");
  }
  return OkStatus();
}

Status TakeBinary(InputBody* in, StringView* binary) {
  const int64_t size = *in->binary_size;
  if (in->has_data) {
    return InvalidArgument(in->what, " has both data and binary_data_size");
  }
  if (size < 0 || static_cast<uint64_t>(size) > binary->size()) {
    return InvalidArgument(in->what, " has binary_data_size ", size, ", where ",
                           binary->size(), " bytes are left of the body");
  }
  HR_ASSIGN_OR_RETURN(
      in->input.tensor,
      TensorFromRaw(*in->dtype, *in->shape, binary->substr(0, size), in->what));
  binary->remove_prefix(size);
  return OkStatus();
}

StatusOr<NamedTensor> ReadBodyInput(JsonReader& at, StringView* binary) {
  InputBody in;
  HR_RETURN_IF_ERROR(ForMembers(
      at, "an input", [&in](const std::string& key, JsonReader& value) {
        return ReadMember(key, value, &in);
      }));
  if (in.input.name.empty()) return InvalidArgument("an input has no name");
  if (!in.dtype) return InvalidArgument(in.what, " has no datatype");
  if (!in.shape) return InvalidArgument(in.what, " has no shape");
  if (in.binary_size) {
    HR_RETURN_IF_ERROR(TakeBinary(&in, binary));
  } else if (!in.has_data) {
    return InvalidArgument(in.what, " has no data");
  } else if (!in.read) {
    JsonReader data(in.data);
    HR_ASSIGN_OR_RETURN(in.input.tensor,
                        TensorFromJson(data, *in.dtype, *in.shape, in.what));
  }
  return std::move(in.input);
}

Status ReadOutput(JsonReader& at, InferBody* body) {
  std::string name;
  bool binary = body->reply.binary;
  HR_RETURN_IF_ERROR(ForMembers(
      at, "an output", [&](const std::string& key, JsonReader& v) -> Status {
        if (key == "name") {
          HR_ASSIGN_OR_RETURN(name, StringIn(v.Skip(), "an output's name"));
          return OkStatus();
        }
        if (key != "parameters") {
          return InvalidArgument("an output has an unknown member '", key, "'");
        }
        return ForMembers(
            v, "an output's parameters",
            [&](const std::string& parameter, JsonReader& value) -> Status {
              if (parameter != "binary_data") {
                return RefusedParameter("an output", parameter);
              }
              HR_ASSIGN_OR_RETURN(binary, BoolIn(value.Skip(), parameter));
              return OkStatus();
            });
      }));
  if (name.empty()) return InvalidArgument("an output has no name");
  body->request.outputs.push_back(std::move(name));
  body->reply.binary_output.push_back(binary);
  return OkStatus();
}

Status ReadParametersOf(StringView object, InferBody* body) {
  if (object.empty()) return OkStatus();
  JsonReader at(object);
  return ForMembers(
      at, "'parameters'",
      [body](const std::string& name, JsonReader& value) -> Status {
        if (name == kSignatureParameter) {
          HR_ASSIGN_OR_RETURN(*body->request.spec.mutable_signature_name(),
                              StringIn(value.Skip(), name));
          return OkStatus();
        }
        if (name != "binary_data_output") {
          return RefusedParameter("the request", name);
        }
        HR_ASSIGN_OR_RETURN(body->reply.binary, BoolIn(value.Skip(), name));
        return OkStatus();
      });
}

StatusOr<size_t> JsonBytesOf(StringView body, StringView header_length) {
  if (header_length.empty()) return body.size();
  uint64_t length = 0;
  if (header_length.find_first_not_of("0123456789") != StringView::npos ||
      !absl::SimpleAtoi(header_length, &length)) {
    return InvalidArgument("Inference-Header-Content-Length '", header_length,
                           "' is no number of bytes");
  }
  if (length > body.size()) {
    return InvalidArgument("Inference-Header-Content-Length is ", length,
                           ", where the body has ", body.size(), " bytes");
  }
  return static_cast<size_t>(length);
}

}  // namespace

StatusOr<InferBody> ReadInferBody(StringView body, StringView header_length) {
  constexpr StringView kMembers[] = {"id", "parameters", "inputs", "outputs"};
  HR_ASSIGN_OR_RETURN(const size_t json_bytes,
                      JsonBytesOf(body, header_length));
  StringView binary = body.substr(json_bytes);
  HR_ASSIGN_OR_RETURN(const JsonBody json,
                      CheckJson(body.substr(0, json_bytes), kMembers));
  HR_RETURN_IF_ERROR(CheckIsObject(json));
  InferBody made;
  if (!json.members[0].value.empty()) {
    HR_ASSIGN_OR_RETURN(made.reply.id, StringIn(json.members[0].value, "'id'"));
  }
  HR_RETURN_IF_ERROR(ReadParametersOf(json.members[1].value, &made));
  if (json.members[2].value.empty()) {
    return InvalidArgument("the request has no 'inputs'");
  }
  HR_RETURN_IF_ERROR(ForElements(
      JsonReader(json.members[2]), "'inputs'", [&](JsonReader& at) -> Status {
        HR_ASSIGN_OR_RETURN(NamedTensor input, ReadBodyInput(at, &binary));
        made.request.inputs.push_back(std::move(input));
        return OkStatus();
      }));
  if (!binary.empty()) {
    return InvalidArgument("the body has ", binary.size(),
                           " bytes after its inputs' binary data");
  }
  if (json.members[3].value.empty()) return made;
  HR_RETURN_IF_ERROR(
      ForElements(JsonReader(json.members[3]), "'outputs'",
                  [&](JsonReader& at) { return ReadOutput(at, &made); }));
  return made;
}

}  // namespace headrace::serving
