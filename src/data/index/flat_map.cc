// IndexFlatMapDataset: rows of functions of elements, found by their numbers.
// WeightedFlatMapDataset: parts of datasets one behind another.
#include "data/dataset_op.h"

namespace headrace {
namespace {

class IndexFlatMap : public InputDataset {
 public:
  IndexFlatMap(ElementSpec spec, DatasetPtr input, CapturedFunctionPtr map,
               CapturedFunctionPtr index_map, int64_t count)
      : InputDataset(std::move(spec), std::move(input)),
        map_(std::move(map)),
        index_map_(std::move(index_map)),
        count_(count) {}
  StringView kind() const override { return "IndexFlatMap"; }
  int64_t Count() const override { return count_; }

  // By number: which element, and which row of what the function makes of it.
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    HR_ASSIGN_OR_RETURN(ElementReaderPtr from, input().Reader(c));
    HR_ASSIGN_OR_RETURN(FunctionRunPtr map, map_->Begin(c));
    HR_ASSIGN_OR_RETURN(FunctionRunPtr index_map, index_map_->Begin(c));
    auto self =
        std::static_pointer_cast<const IndexFlatMap>(shared_from_this());
    return ReaderOf([=, from = std::move(from), map = std::move(map),
                     index_map = std::move(index_map)](
                        PullContext& context, int64_t i, Element* out) {
      Element args = {Tensor::Scalar<int64_t>(i)}, places, made;
      HR_RETURN_IF_ERROR((*index_map)(&args, &places));
      int64_t at, row;
      HR_RETURN_IF_ERROR(Places(places, &at, &row));
      if (at < 0 || at >= self->input().Cardinality()) {
        return InvalidArgument(
            "`index_flat_map` got invalid `index_map_func` "
            "which returns element ",
            at, ", but the input has ", self->input().Cardinality());
      }
      HR_RETURN_IF_ERROR(from->Read(context, at, &args));
      HR_RETURN_IF_ERROR((*map)(&args, &made));
      return Rows(made, row, out);
    });
  }

  class Iterator : public InputIterator<IndexFlatMap> {
   public:
    using InputIterator::InputIterator;
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(map_, dataset().map_->Begin(c));
      HR_ASSIGN_OR_RETURN(index_map_, dataset().index_map_->Begin(c));
      return InputIterator::Start(c);
    }
    // The input goes on from element to element, as the places do.
    Status Next(PullContext& c, Element* out, bool* end) override {
      Element args = {Tensor::Scalar<int64_t>(at_)}, places;
      Status s = (*index_map_)(&args, &places);
      if (!s.ok()) return dataset().index_map_->Blame(s, prefix());
      int64_t wanted, row;
      HR_RETURN_IF_ERROR(Places(places, &wanted, &row));
      while (element_ < wanted) {
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        HR_RETURN_IF_ERROR(NextInput(c, &args, end));
        if (*end) return OkStatus();
        if (++element_ < wanted) continue;
        s = (*map_)(&args, &made_);
        if (!s.ok()) return dataset().map_->Blame(s, prefix());
      }
      if (element_ != wanted) {
        return InvalidArgument(
            "`index_flat_map` got an `index_map_func` that goes back from "
            "element ",
            element_, " to ", wanted);
      }
      ++at_;
      return Rows(made_, row, out);
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), "element_count", at_);
      w.PutInt(prefix(), "input_element_count", element_ + 1);
      HR_RETURN_IF_ERROR(w.PutElement(prefix(), "size", "element", made_));
      return InputIterator::Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(at_, r.GetCount(prefix(), "element_count"));
      HR_ASSIGN_OR_RETURN(element_,
                          r.GetCount(prefix(), "input_element_count"));
      --element_;
      HR_ASSIGN_OR_RETURN(made_, r.GetElement(prefix(), "size", "element"));
      return InputIterator::Restore(c, r);
    }

   private:
    FunctionRunPtr map_, index_map_;
    int64_t at_ = 0, element_ = -1;
    Element made_;  // of the function, for element_
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  static Status Places(const Element& places, int64_t* at, int64_t* row) {
    const auto is_number = [](const Tensor& t) {
      return (t.dtype() == DType::kInt32 || t.dtype() == DType::kInt64) &&
             t.num_elements() == 1;
    };
    if (places.size() != 2 || !is_number(places[0]) || !is_number(places[1])) {
      return InvalidArgument(
          "The `index_map_fn` for `index_flat_map` is expected to return two "
          "int values representing the element index and an offset within the "
          "element. Got: ",
          places.size(), " values");
    }
    *at = places[0].IntAt(0);
    *row = places[1].IntAt(0);
    return OkStatus();
  }
  static Status Rows(const Element& made, int64_t row, Element* out) {
    out->clear();
    for (const Tensor& t : made) {
      // What has no rows is an element by itself.
      if (t.rank() == 0) {
        out->push_back(t);
        continue;
      }
      if (row < 0 || row >= t.dim(0)) {
        return InvalidArgument(
            "`index_flat_map` got invalid `index_map_func` which returns "
            "offset ",
            row, ", but the input element has ", t.dim(0),
            " elements: ", t.Describe());
      }
      out->push_back(RowOf(t, row));
    }
    return OkStatus();
  }

  const CapturedFunctionPtr map_, index_map_;
  const int64_t count_;
};

Status MakeIndexFlatMap(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(
      auto map, CapturedFunction::Make(c, "map_func", "map_func_other_args"));
  HR_ASSIGN_OR_RETURN(
      auto index_map,
      CapturedFunction::Make(c, "index_map_func", "index_map_func_other_args"));
  HR_ASSIGN_OR_RETURN(const int64_t count,
                      IntInput(c, c.num_inputs() - 1, "output_cardinality"));
  if (count < kUnknownCardinality) {
    return InvalidArgument("output_cardinality must be at least ",
                           kUnknownCardinality, ", got ", count);
  }
  return SetDataset<IndexFlatMap>(c, std::move(spec), std::move(input),
                                  std::move(map), std::move(index_map), count);
}

HR_OP(IndexFlatMapDataset)
    .Input("input_dataset: variant")
    .Input("map_func_other_args: Tmap_func_args")
    .Input("index_map_func_other_args: Tindex_map_func_args")
    .Input("output_cardinality: int64")
    .Output("handle: variant")
    .Attr("map_func: func")
    .Attr("index_map_func: func")
    .Attr("Tmap_func_args: list(type) >= 0")
    .Attr("Tindex_map_func_args: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc(
        "Rows of what a function makes of elements; another says of each "
        "element's number which row of which it is.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeIndexFlatMap>);

// So many elements of each dataset.
class WeightedFlatMap : public Dataset {
 public:
  WeightedFlatMap(ElementSpec spec, std::vector<DatasetPtr> inputs,
                  std::vector<int64_t> counts)
      : Dataset(std::move(spec)),
        inputs_(std::move(inputs)),
        counts_(std::move(counts)) {}
  StringView kind() const override { return "WeightedFlatMap"; }
  std::vector<DatasetPtr> inputs() const override { return inputs_; }
  int64_t Count() const override {
    int64_t sum = 0;
    for (const int64_t n : counts_) sum += n;
    return sum;
  }

  class Iterator : public IteratorOf<WeightedFlatMap> {
   public:
    using IteratorOf::IteratorOf;
    Status Next(PullContext& c, Element* out, bool* end) override {
      const WeightedFlatMap& d = dataset();
      while (part_ < d.inputs_.size()) {
        if (at_ < d.counts_[part_]) {
          HR_RETURN_IF_ERROR(Open(c));
          HR_RETURN_IF_ERROR(input_->Next(c, out, end));
          if (!*end) {
            ++at_;
            return OkStatus();
          }
        }
        ++part_;
        at_ = 0;
        input_.reset();
      }
      *end = true;
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), "part", static_cast<int64_t>(part_));
      w.PutInt(prefix(), "element_count", at_);
      return SaveInput(c, w, prefix(), "input_impl_empty", input_.get());
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(const int64_t part, r.GetCount(prefix(), "part"));
      HR_ASSIGN_OR_RETURN(at_, r.GetCount(prefix(), "element_count"));
      part_ = static_cast<size_t>(part);
      if (part_ > dataset().inputs_.size()) return DamagedState(prefix());
      input_.reset();
      if (part_ == dataset().inputs_.size()) return OkStatus();
      return RestoreInput(c, r, prefix(), "input_impl_empty",
                          *dataset().inputs_[part_], Parent(), &input_);
    }

   private:
    std::string Parent() const {
      return absl::StrCat(prefix(), "[", part_, "]");
    }
    Status Open(PullContext& c) {
      if (input_) return OkStatus();
      HR_ASSIGN_OR_RETURN(input_,
                          dataset().inputs_[part_]->Iterate(c, Parent()));
      return OkStatus();
    }

    size_t part_ = 0;
    int64_t at_ = 0;  // of the part
    IteratorPtr input_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::vector<DatasetPtr> inputs_;
  const std::vector<int64_t> counts_;
};

// Upstream's rule: of the input of the largest weight as many elements as the
// shortest input has, of the others in the ratios of the weights.
std::vector<int64_t> CountsOf(absl::Span<const DatasetPtr> inputs,
                              absl::Span<const double> weights) {
  int64_t shortest = INT64_MAX;
  for (const DatasetPtr& d : inputs) {
    shortest = std::min(shortest, d->Cardinality());
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  std::vector<int64_t> counts;
  for (const double weight : weights) {
    counts.push_back(
        std::min(shortest, static_cast<int64_t>(static_cast<double>(shortest) *
                                                (weight / largest))));
  }
  return counts;
}

Status MakeWeighted(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  const int n = static_cast<int>(c.op().int_attr("N"));
  const int m = static_cast<int>(c.op().int_attr("M"));
  if (n != m) {
    return InvalidArgument(
        "`input_datasets` and `weights` of the WeightedFlatMap must have the "
        "same size. Got ",
        n, " datasets and ", m, " weights.");
  }
  std::vector<DatasetPtr> inputs;
  std::vector<double> weights;
  for (int i = 0; i < n; ++i) {
    HR_ASSIGN_OR_RETURN(inputs.emplace_back(), DatasetOf(c.input(i)));
    const Tensor& weight = c.input(n + i);
    if (weight.num_elements() != 1) {
      return InvalidArgument("`weights` must be scalars, got ",
                             weight.Describe());
    }
    weights.push_back(weight.data<double>()[0]);
    if (!(weights.back() > 0) || std::isinf(weights.back())) {
      return InvalidArgument("`weights` must be greater than 0.0. Input ", i,
                             " has a weight of ", weights.back());
    }
    const int64_t count = inputs.back()->Cardinality();
    if (count < 0) {
      return InvalidArgument(
          "Cardinalities of the inputs must be known. Input ", i, " has ",
          count == kInfiniteCardinality ? "INFINITE" : "UNKNOWN",
          " cardinality.");
    }
    if (inputs.back()->spec().types != spec.types) {
      return InvalidArgument("input ", i, " has elements of other types");
    }
  }
  std::vector<int64_t> counts = CountsOf(inputs, weights);
  return SetDataset<WeightedFlatMap>(c, std::move(spec), std::move(inputs),
                                     std::move(counts));
}

HR_OP(WeightedFlatMapDataset)
    .Input("input_datasets: N * variant")
    .Input("weights: M * double")
    .Output("handle: variant")
    .Attr("N: int >= 2")
    .Attr("M: int >= 2")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc(
        "Elements of datasets one behind another, in numbers of the weights' "
        "ratios.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeWeighted>);

}  // namespace
}  // namespace headrace
