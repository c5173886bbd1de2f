// Datasets in folders: Save, Load, Snapshot.
#include "base/files/files.h"
#include "cc/dataset/state.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/protobuf/struct.pb.h"

namespace headrace::tf::data {

using internal::AttrsOf;
using internal::CapturedTypes;
using internal::Check;
using internal::Constant;
using internal::Inputs;
using internal::Op;
using internal::Recorded;
using internal::Throw;
using internal::Trace;
using tensorflow::StructuredValue;

namespace {

constexpr char kSpecFile[] = "dataset_spec.pb";
constexpr int64_t kShards = 2;  // of a snapshot: elements by turns

Tensor Text(const std::string& s) {
  return Constant(headrace::Tensor::Scalar<std::string>(s));
}

const ElementSpec& ScalarOf(DType dtype) {
  static const auto* const number =
      new ElementSpec{{DType::kInt64}, {TensorShape{}}};
  static const auto* const variant =
      new ElementSpec{{DType::kVariant}, {TensorShape{}}};
  return dtype == DType::kInt64 ? *number : *variant;
}

void PutComponent(const ElementSpec& spec, size_t i, StructuredValue* value) {
  auto* put = value->mutable_tensor_spec_value();
  put->set_dtype(
      static_cast<tensorflow::DataType>(static_cast<int>(spec.dtypes[i])));
  if (!spec.shapes[i].known_rank) {
    put->mutable_shape()->set_unknown_rank(true);
    return;
  }
  // Makes the field exist: a scalar's shape would write nothing.
  put->mutable_shape();
  for (const int64_t d : spec.shapes[i].dims) {
    put->mutable_shape()->add_dim()->set_size(d);
  }
}

// The structure that Python gives such elements: a tensor, a tuple, a
// dictionary, or a pair of one and a tensor.
StructuredValue ToStructure(const ElementSpec& spec) {
  StructuredValue value;
  const size_t n = spec.dtypes.size();
  size_t named = 0;
  while (named < spec.names.size() && !spec.names[named].empty()) ++named;
  if (named == 0) {
    if (n == 1) PutComponent(spec, 0, &value);
    if (n != 1) value.mutable_tuple_value();
    for (size_t i = 0; n != 1 && i < n; ++i) {
      PutComponent(spec, i, value.mutable_tuple_value()->add_values());
    }
    return value;
  }
  StructuredValue* dict =
      named == n ? &value : value.mutable_tuple_value()->add_values();
  auto& fields = *dict->mutable_dict_value()->mutable_fields();
  for (size_t i = 0; i < named; ++i) {
    PutComponent(spec, i, &fields[spec.names[i]]);
  }
  for (size_t i = named; i < n; ++i) {
    PutComponent(spec, i, value.mutable_tuple_value()->add_values());
  }
  return value;
}

void AddComponent(const StructuredValue& value, const std::string& name,
                  ElementSpec* spec) {
  if (!value.has_tensor_spec_value() ||
      !headrace::DTypeIsValid(value.tensor_spec_value().dtype())) {
    Throw(ErrorCode::kUnimplemented,
          "Load: the saved elements are no tensors, tuples or dictionaries of "
          "tensors");
  }
  spec->dtypes.push_back(static_cast<DType>(value.tensor_spec_value().dtype()));
  const auto& shape = value.tensor_spec_value().shape();
  TensorShape to;
  to.known_rank = !shape.unknown_rank();
  for (const auto& d : shape.dim()) {
    // Any negative size of a file means "unknown".
    to.dims.push_back(std::max<int64_t>(d.size(), -1));
  }
  spec->shapes.push_back(std::move(to));
  spec->names.push_back(name);
}

void AddStructure(const StructuredValue& value, ElementSpec* spec) {
  if (value.has_dict_value()) {
    // Python flattens dictionaries in the order of their keys; a proto's map
    // has no order.
    std::map<std::string, const StructuredValue*> sorted;
    for (const auto& [k, v] : value.dict_value().fields()) sorted[k] = &v;
    for (const auto& [k, v] : sorted) AddComponent(*v, k, spec);
  } else if (value.has_tuple_value()) {
    for (const StructuredValue& v : value.tuple_value().values()) {
      // Named components come first.
      const bool first = spec->dtypes.empty();
      first ? AddStructure(v, spec) : AddComponent(v, "", spec);
    }
  } else {
    AddComponent(value, "", spec);
  }
}

ElementSpec ReadSpec(const std::string& folder) {
  std::string path;
  auto fs = headrace::FileSystemFor(folder, &path);
  Check(fs.status());
  const std::string file = headrace::JoinPath(path, kSpecFile);
  auto bytes = headrace::ReadWholeFile(*fs, file);
  Check(bytes.status());
  StructuredValue value;
  if (!value.ParseFromString(*bytes)) {
    Throw(ErrorCode::kDataLoss, absl::StrCat(file, " is damaged"));
  }
  ElementSpec spec;
  AddStructure(value, &spec);
  if (spec.dtypes.empty()) {
    Throw(ErrorCode::kDataLoss, absl::StrCat(file, " names no components"));
  }
  return spec;
}

void WriteSpec(const std::string& folder, const ElementSpec& spec) {
  std::string path;
  auto fs = headrace::FileSystemFor(folder, &path);
  Check(fs.status());
  Check(headrace::CreateDirectories(*fs, path));
  Check(headrace::WriteFileAtomically(*fs, headrace::JoinPath(path, kSpecFile),
                                      ToStructure(spec).SerializeAsString()));
}

}  // namespace

internal::Recorded Dataset::ReaderOf(const ElementSpec& spec,
                                     const std::vector<ElementSpec>& inner) {
  // Elements of one shard: their components may be datasets themselves.
  return Trace("Dataset_reader", ScalarOf(DType::kVariant),
               [&](const Element& e) {
                 const Dataset shards =
                     State::Make({e[0], ScalarOf(DType::kVariant), {spec}, {}});
                 InterleaveOptions options;
                 // By turns over as many shards as were written: the elements
                 // come in their old order.
                 options.cycle_length = kShards;
                 Dataset made = shards.Interleave(
                     [&](const Dataset& shard) {
                       return State::Make({shard.variant(), spec, inner, {}});
                     },
                     options);
                 return Element{made.variant()};
               });
}

void Dataset::SaveTo(const std::string& folder, const ElementFunction& shard,
                     const std::string& compression) const {
  const Recorded f = Trace("Dataset_shard", spec(), [&](const Element& e) {
    return shard ? shard(e).components : Element{internal::Int64(0)};
  });
  WriteSpec(folder, spec());
  internal::OpAll("SaveDataset", Inputs({variant(), Text(folder)}, {&f}),
                  {{"compression", compression},
                   {"shard_func", f.ref()},
                   {"use_shard_func", shard != nullptr},
                   {"Tshard_func_args", CapturedTypes(f)}});
}

Dataset Dataset::Load(const std::string& folder,
                      const std::string& compression) {
  const ElementSpec spec = ReadSpec(folder);
  const Recorded f = ReaderOf(spec, {});
  const Tensor made =
      Op("LoadDataset", Inputs({Text(folder)}, {&f}),
         AttrsOf(spec, {{"compression", compression},
                        {"reader_func", f.ref()},
                        {"Treader_func_args", CapturedTypes(f)}}));
  return State::Make({made, spec, {}, {f.function}});
}

Dataset Dataset::Snapshot(const std::string& folder,
                          const std::string& compression) const {
  // The numbers decide the shard and are dropped again behind the snapshot.
  const Dataset numbered = Enumerate();
  const Recorded reader = ReaderOf(numbered.spec(), state_->inner);
  const Recorded shard =
      Trace("Dataset_shard", numbered.spec(), [](const Element& e) {
        return Element{Op("FloorMod", {e[0], internal::Int64(kShards)})};
      });
  const Tensor made = Op(
      "SnapshotDatasetV2",
      Inputs({numbered.variant(), Text(folder)}, {&reader, &shard}),
      AttrsOf(numbered.spec(), {{"compression", compression},
                                {"reader_func", reader.ref()},
                                {"shard_func", shard.ref()},
                                {"Treader_func_args", CapturedTypes(reader)},
                                {"Tshard_func_args", CapturedTypes(shard)}}));
  const Dataset kept = State::Make({made,
                                    numbered.spec(),
                                    numbered.state_->inner,
                                    {state_, reader.function, shard.function}});
  Dataset result = kept.MapElements(
      [](const Element& e) { return Made(Element(e.begin() + 1, e.end())); },
      {});
  State named = *result.state_;
  named.spec.names = spec().names;
  return State::Make(std::move(named));
}

}  // namespace headrace::tf::data
