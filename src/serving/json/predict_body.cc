#include "serving/json/predict_body.h"

#include "absl/strings/str_join.h"
#include "serving/json/tensor_reader.h"

namespace headrace::serving {
namespace {

bool AtPlainObject(const JsonReader& at) {
  return at.kind() == JsonKind::kObject && !IsBase64Object(at);
}

// The place of the argument of that name, most likely `guess`; their number
// where there is none.
size_t PlaceOf(StringView key, absl::Span<const Argument> arguments,
               size_t guess) {
  if (guess < arguments.size() && JsonStringIs(key, arguments[guess].name)) {
    return guess;
  }
  size_t i = 0;
  while (i < arguments.size() && !JsonStringIs(key, arguments[i].name)) ++i;
  return i;
}

using MayLack = std::vector<bool>;
bool May(const MayLack& may_lack, size_t i) {
  return i < may_lack.size() && may_lack[i];
}

// What went wrong in a row, and in which.
Status InRow(int64_t row, StringView key, const Status& s) {
  return Status(s.code(),
                absl::StrCat("Failed to process element: ", row,
                             key.empty() ? "" : " key: ", key,
                             " of 'instances' list. Error: ", s.ToString()));
}

// Rows that are objects, with a value for each argument.
class ObjectRows {
 public:
  ObjectRows(absl::Span<const Argument> arguments, int64_t rows,
             const MayLack& may_lack)
      : arguments_(arguments), may_lack_(may_lack), seen_(arguments.size()) {
    for (const Argument& a : arguments) columns_.emplace_back(a.dtype, rows);
  }

  // The object that `at` stands at, row number `row`.
  Status Add(JsonReader& at, int64_t row) {
    std::fill(seen_.begin(), seen_.end(), false);
    size_t keys = 0;
    for (bool more = at.Enter(); more; more = at.Next(), ++keys) {
      const size_t i = PlaceOf(at.Key(), arguments_, keys);
      if (i == arguments_.size() || seen_[i]) {
        at.Skip();
        continue;
      }
      seen_[i] = true;
      if (Status s = columns_[i].Add(at); !s.ok()) {
        return InRow(row, arguments_[i].name, s);
      }
    }
    if (row == 0) DropLacking();
    if (keys != arguments_.size() - lacking_) {
      const auto name = [](std::string* out, const Argument& a) {
        out->append(a.name);
      };
      return InRow(row, "",
                   InvalidArgument("JSON object: keys must be equal to: ",
                                   absl::StrJoin(arguments_, ",", name)));
    }
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (seen_[i] || lacks_[i]) continue;
      return InRow(row, "",
                   InvalidArgument("JSON object: does not have named input: ",
                                   arguments_[i].name));
    }
    return OkStatus();
  }

  Tensors Finish() {
    Tensors tensors(columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!lacks_[i]) tensors[i] = columns_[i].Finish();
    }
    return tensors;
  }

 private:
  // Rows lack what the first one lacks, if it may.
  void DropLacking() {
    lacks_.assign(arguments_.size(), false);
    for (size_t i = 0; i < arguments_.size(); ++i) {
      lacks_[i] = !seen_[i] && May(may_lack_, i);
      lacking_ += lacks_[i];
    }
  }

  const absl::Span<const Argument> arguments_;
  const MayLack& may_lack_;
  std::vector<bool> seen_, lacks_;
  size_t lacking_ = 0;
  std::vector<TensorRows> columns_;
};

StatusOr<Tensors> ReadObjectRows(JsonReader at, int64_t rows,
                                 absl::Span<const Argument> arguments,
                                 const MayLack& may_lack) {
  ObjectRows columns(arguments, rows, may_lack);
  for (int64_t row = 0; row < rows; ++row, at.Next()) {
    if (!AtPlainObject(at)) {
      return InvalidArgument("Expecting object but got ",
                             at.kind() == JsonKind::kArray ? "list" : "value",
                             " at item ", row, " of input list");
    }
    HR_RETURN_IF_ERROR(columns.Add(at, row));
  }
  return columns.Finish();
}

StatusOr<Tensors> ReadPlainRows(JsonReader at, int64_t rows,
                                const Argument& argument) {
  TensorRows column(argument.dtype, rows);
  for (int64_t row = 0; row < rows; ++row, at.Next()) {
    if (AtPlainObject(at)) {
      return InvalidArgument("Expecting value/list but got object at item ",
                             row, " of input list");
    }
    if (Status s = column.Add(at); !s.ok()) return InRow(row, "", s);
  }
  return Tensors{column.Finish()};
}

StatusOr<Tensors> ReadRows(const JsonMember& instances,
                           absl::Span<const Argument> arguments,
                           const MayLack& may_lack) {
  if (JsonKindOf(instances.value) != JsonKind::kArray) {
    return InvalidArgument("Expecting 'instances' to be an list/array");
  }
  JsonReader at(instances);
  if (!at.Enter()) return InvalidArgument("No values in 'instances' array");
  if (AtPlainObject(at)) {
    return ReadObjectRows(at, instances.items, arguments, may_lack);
  }
  if (arguments.size() != 1) {
    return InvalidArgument(
        "instances is a plain list, but expecting list of objects as multiple "
        "input tensors required as per tensorinfo_map");
  }
  return ReadPlainRows(at, instances.items, arguments[0]);
}

StatusOr<Tensors> ReadNamedColumns(JsonReader at,
                                   absl::Span<const Argument> arguments,
                                   const MayLack& may_lack) {
  Tensors tensors(arguments.size());
  std::vector<bool> seen(arguments.size());
  size_t keys = 0;
  for (bool more = at.Enter(); more; more = at.Next(), ++keys) {
    const size_t i = PlaceOf(at.Key(), arguments, keys);
    if (i == arguments.size() || seen[i]) {
      at.Skip();
      continue;
    }
    seen[i] = true;
    TensorRows one(arguments[i].dtype);
    HR_RETURN_IF_ERROR(one.Add(at));
    tensors[i] = one.Finish();
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (seen[i] || May(may_lack, i)) continue;
    return InvalidArgument("Missing named input: ", arguments[i].name,
                           " in 'inputs' object.");
  }
  return tensors;
}

StatusOr<Tensors> ReadColumns(JsonReader inputs,
                              absl::Span<const Argument> arguments,
                              const MayLack& may_lack) {
  if (AtPlainObject(inputs)) {
    return ReadNamedColumns(inputs, arguments, may_lack);
  }
  if (arguments.size() != 1) {
    return InvalidArgument(
        "inputs is a plain value/list, but expecting an object as multiple "
        "input tensors required as per tensorinfo_map");
  }
  HR_ASSIGN_OR_RETURN(Tensor t, ReadTensor(inputs, arguments[0].dtype));
  return Tensors{std::move(t)};
}

}  // namespace

Status CheckIsObject(const JsonBody& body) {
  if (JsonKindOf(body.value) == JsonKind::kObject) return OkStatus();
  return InvalidArgument("JSON Value: ", JsonExcerpt(body.value),
                         " Is not object");
}

StatusOr<std::string> SignatureNameOf(const JsonMember& member) {
  if (member.value.empty()) return std::string();
  if (JsonKindOf(member.value) == JsonKind::kString) {
    return JsonString(member.value);
  }
  return InvalidArgument("JSON Value: ", JsonExcerpt(member.value),
                         " not formatted correctly. 'signature_name' key must "
                         "be a string value.");
}

StatusOr<PredictBody> PredictBody::Parse(StringView text) {
  constexpr StringView kNames[] = {"signature_name", "instances", "inputs"};
  HR_ASSIGN_OR_RETURN(JsonBody body, CheckJson(text, kNames));
  HR_RETURN_IF_ERROR(CheckIsObject(body));
  PredictBody made;
  made.value_ = body.value;
  made.signature_name_ = std::move(body.members[0]);
  made.instances_ = std::move(body.members[1]);
  made.inputs_ = std::move(body.members[2]);
  return made;
}

StatusOr<std::string> PredictBody::SignatureName() const {
  return SignatureNameOf(signature_name_);
}

StatusOr<PredictBody::Inputs> PredictBody::Read(
    absl::Span<const Argument> arguments, const MayLack& may_lack) const {
  const bool rows = !instances_.value.empty();
  const bool columns = !inputs_.value.empty();
  if (rows && columns) {
    return InvalidArgument(
        "JSON Value: ", JsonExcerpt(value_),
        " not formatted correctly, expecting only one of 'inputs' or "
        "'instances' keys to exist");
  }
  if (!rows && !columns) {
    return InvalidArgument("Missing 'inputs' or 'instances' key");
  }
  if (rows) {
    HR_ASSIGN_OR_RETURN(Tensors tensors,
                        ReadRows(instances_, arguments, may_lack));
    return Inputs{PredictFormat::kRows, std::move(tensors)};
  }
  HR_ASSIGN_OR_RETURN(Tensors tensors,
                      ReadColumns(JsonReader(inputs_), arguments, may_lack));
  return Inputs{PredictFormat::kColumns, std::move(tensors)};
}

}  // namespace headrace::serving
