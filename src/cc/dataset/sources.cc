// Datasets that begin a pipeline, and what all of them share.
#include "cc/dataset/state.h"
#include "cc/seeds.h"

namespace headrace::tf {

namespace internal {

AttrMap AttrsOf(const data::ElementSpec& spec, AttrMap attrs) {
  std::vector<headrace::DType> types;
  std::vector<headrace::Shape> shapes;
  for (const DType d : spec.dtypes) types.push_back(Core(d));
  for (const TensorShape& s : spec.shapes) shapes.push_back(Core(s));
  attrs.Set("output_types", std::move(types));
  attrs.Set("output_shapes", std::move(shapes));
  return attrs;
}

Tensor Int64(int64_t v) {
  return Constant(headrace::Tensor::Scalar<int64_t>(v));
}
Tensor Bool(bool v) { return Constant(headrace::Tensor::Scalar<bool>(v)); }

Recorded Trace(const char* name, const data::ElementSpec& spec,
               const TensorFn& body) {
  std::vector<ArgSpec> args;
  for (size_t i = 0; i < spec.dtypes.size(); ++i) {
    args.push_back({Core(spec.dtypes[i]), Core(spec.shapes[i]), nullptr});
  }
  return Record(name, args, body);
}

std::vector<Tensor> Inputs(std::vector<Tensor> inputs,
                           const std::vector<const Recorded*>& functions,
                           const std::vector<Tensor>& more) {
  for (const Recorded* f : functions) {
    for (const Value& v : f->captures) inputs.push_back(Access::Wrap(v));
  }
  inputs.insert(inputs.end(), more.begin(), more.end());
  return inputs;
}

std::vector<headrace::DType> CapturedTypes(const Recorded& f) {
  std::vector<headrace::DType> types;
  for (const Value& v : f.captures) types.push_back(v.dtype());
  return types;
}

data::ElementSpec SpecOf(const data::Element& components,
                         std::vector<std::string> names) {
  if (components.empty()) {
    Throw(ErrorCode::kInvalidArgument, "a dataset of elements without tensors");
  }
  data::ElementSpec spec;
  for (const Tensor& t : components) {
    spec.dtypes.push_back(t.dtype());
    spec.shapes.push_back(t.shape());
  }
  spec.names = std::move(names);
  return spec;
}

}  // namespace internal

namespace data {

using internal::Int64;
using internal::Op;
using internal::SpecOf;
using internal::Throw;

namespace {

const ElementSpec& Text() {
  static const auto* const spec =
      new ElementSpec{{DType::kString}, {TensorShape{}}};
  return *spec;
}

// The attributes of a source by its components.
AttrMap SourceAttrs(const Element& components, const ElementSpec& spec) {
  AttrMap attrs = internal::AttrsOf(spec);
  // Sources call the attribute by another name.
  attrs.Erase("output_types");
  std::vector<headrace::DType> types;
  for (const Tensor& t : components) types.push_back(internal::Core(t.dtype()));
  attrs.Set("Toutput_types", std::move(types));
  return attrs;
}

}  // namespace

Dataset Dataset::State::Make(State state) {
  return Dataset(std::make_shared<const State>(std::move(state)));
}

const ElementSpec& Dataset::spec() const { return state_->spec; }
const Tensor& Dataset::variant() const { return state_->variant; }

int64_t Dataset::cardinality() const {
  return Op("DatasetCardinality", {variant()}).item<int64_t>();
}

void Dataset::CheckCount(const Element& e, size_t count) {
  if (e.size() == count) return;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("a function of ", count, " tensors for elements of ",
                     e.size()));
}

Dataset Dataset::FromTensors(const Element& components) {
  return FromMade(components, /*slices=*/false);
}

Dataset Dataset::FromTensorSlices(const Element& components) {
  return FromMade(components, /*slices=*/true);
}

Dataset Dataset::FromMade(const Made& made, bool slices) {
  const Element& components = made.components;
  ElementSpec spec = SpecOf(components, made.names);
  if (!slices) {
    return State::Make(
        {Op("TensorDataset", components, SourceAttrs(components, spec)), spec});
  }
  int64_t rows = -1;
  for (TensorShape& s : spec.shapes) {
    if (!s.known_rank) continue;
    if (s.rank() == 0) {
      Throw(ErrorCode::kInvalidArgument,
            "Unbatching a tensor is only supported for rank >= 1");
    }
    if (rows >= 0 && s[0] >= 0 && rows != s[0]) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("Dimensions ", rows, " and ", s[0],
                         " are not compatible"));
    }
    rows = std::max(rows, s[0]);
    s.dims.erase(s.dims.begin());
  }
  return State::Make(
      {Op("TensorSliceDataset", components, SourceAttrs(components, spec)),
       spec});
}

Dataset Dataset::Range(int64_t stop) { return Range(0, stop); }
Dataset Dataset::Range(int64_t start, int64_t stop, int64_t step) {
  const ElementSpec spec = {{DType::kInt64}, {TensorShape{}}};
  return State::Make(
      {Op("RangeDataset", {Int64(start), Int64(stop), Int64(step)},
          internal::AttrsOf(spec)),
       spec});
}

namespace {

// File by file, as Python's readers go and TensorFlow's: so saved iterators fit
// all of them. `read` makes a dataset of one file's name.
template <typename Read>
Dataset FileByFile(const Tensor& names, Read read) {
  const Tensor flat = Op("Reshape", {names, Tensor::From<int32_t>({-1})});
  return Dataset::FromTensorSlices({flat}).FlatMap(read);
}

}  // namespace

Dataset Dataset::TextLine(const FileNames& files,
                          const std::string& compression) {
  return FileByFile(files.tensor(), [compression](const Tensor& name) {
    return State::Make(
        {Op("TextLineDataset", {name, Tensor(compression), Int64(0)}), Text()});
  });
}

Dataset Dataset::TFRecord(const FileNames& files,
                          const std::string& compression) {
  return FileByFile(files.tensor(), [compression](const Tensor& name) {
    return State::Make(
        {Op("TFRecordDataset", {name, Tensor(compression), Int64(0)}), Text()});
  });
}

Dataset Dataset::FixedLengthRecord(const FileNames& files, int64_t record_bytes,
                                   int64_t header_bytes, int64_t footer_bytes,
                                   const std::string& compression) {
  return FileByFile(files.tensor(), [=](const Tensor& name) {
    return State::Make(
        {Op("FixedLengthRecordDatasetV2",
            {name, Int64(header_bytes), Int64(record_bytes),
             Int64(footer_bytes), Int64(0), Tensor(compression)}),
         Text()});
  });
}

Dataset Dataset::ListFiles(const FileNames& patterns, bool shuffle,
                           std::optional<int64_t> seed) {
  const Tensor names = Op("MatchingFiles", {patterns.tensor()});
  if (names.num_elements() == 0) {
    std::string all;
    for (const std::string& p : patterns.tensor().vector<std::string>()) {
      all += (all.empty() ? "" : ", ") + p;
    }
    Throw(ErrorCode::kInvalidArgument, "No files matched pattern: " + all);
  }
  const Dataset files = FromTensorSlices({names});
  // A buffer for all names: a full shuffle, as Python's.
  return shuffle ? files.Shuffle(names.num_elements(), seed) : files;
}

Dataset Dataset::Zip(const std::vector<Dataset>& datasets) {
  State state;
  std::vector<Tensor> variants;
  bool named = false;
  for (const Dataset& d : datasets) {
    const State& s = *d.state_;
    variants.push_back(s.variant);
    state.spec.dtypes.insert(state.spec.dtypes.end(), s.spec.dtypes.begin(),
                             s.spec.dtypes.end());
    state.spec.shapes.insert(state.spec.shapes.end(), s.spec.shapes.begin(),
                             s.spec.shapes.end());
    std::vector<std::string> names = s.spec.names;
    named = named || !names.empty();
    // Components without names beside named ones have empty ones.
    names.resize(s.spec.dtypes.size());
    state.spec.names.insert(state.spec.names.end(), names.begin(), names.end());
    std::vector<ElementSpec> inner = s.inner;
    inner.resize(s.spec.dtypes.size());
    state.inner.insert(state.inner.end(), inner.begin(), inner.end());
    state.held.push_back(d.state_);
  }
  if (variants.empty()) {
    Throw(ErrorCode::kInvalidArgument,
          "Must pass at least one dataset to Zip.");
  }
  if (!named) state.spec.names.clear();
  const int64_t count = static_cast<int64_t>(variants.size());
  state.variant =
      Op("ZipDataset", variants, internal::AttrsOf(state.spec, {{"N", count}}));
  return State::Make(std::move(state));
}

}  // namespace data
}  // namespace headrace::tf
