// UniqueDataset: each element once. IgnoreErrorsDataset: without those that
// fail. AssertCardinalityDataset: with a length that is promised.
#include <chrono>
#include <cstdio>
#include <thread>
#include <unordered_set>

#include "data/dataset_op.h"
#include "data/element_codec.h"
#include "op/op_like.h"

namespace headrace {
namespace {

class UniqueDataset : public InputDataset {
 public:
  using InputDataset::InputDataset;
  StringView kind() const override { return "Unique"; }
  int64_t Count() const override { return kUnknownCardinality; }

  class Iterator : public KeptInputIterator<UniqueDataset> {
   public:
    using KeptInputIterator::KeptInputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (true) {
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        HR_RETURN_IF_ERROR(NextInput(c, out, end));
        if (*end) return OkStatus();
        std::string key;
        HR_RETURN_IF_ERROR(EncodeElement(*out, &key));
        if (seen_.insert(std::move(key)).second) return OkStatus();
      }
    }
    Status Save(PullContext& c, StateWriter& w) override {
      Element seen;
      for (const std::string& key : seen_) {
        HR_ASSIGN_OR_RETURN(Element e, DecodeElement(key));
        for (Tensor& t : e) seen.push_back(std::move(t));
      }
      HR_RETURN_IF_ERROR(
          w.PutElement(prefix(), FullKey(prefix(), "unique_elements_size"),
                       FullKey(prefix(), "unique_elements"), seen));
      return KeptInputIterator::Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(
          const Element seen,
          r.GetElement(prefix(), FullKey(prefix(), "unique_elements_size"),
                       FullKey(prefix(), "unique_elements")));
      const size_t width = dataset().spec().types.size();
      if (seen.size() % width != 0) return DamagedState(prefix());
      seen_.clear();
      for (size_t i = 0; i < seen.size(); i += width) {
        const Element element(seen.begin() + i, seen.begin() + i + width);
        HR_RETURN_IF_ERROR(CheckSaved(prefix(), dataset().spec(), element));
        std::string key;
        HR_RETURN_IF_ERROR(EncodeElement(element, &key));
        seen_.insert(std::move(key));
      }
      return KeptInputIterator::Restore(c, r);
    }

   private:
    std::unordered_set<std::string> seen_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }
};

class IgnoreErrorsDataset : public InputDataset {
 public:
  IgnoreErrorsDataset(ElementSpec spec, DatasetPtr input, bool warn)
      : InputDataset(std::move(spec), std::move(input)), warn_(warn) {}
  StringView kind() const override { return "IgnoreErrors"; }
  int64_t Count() const override { return kUnknownCardinality; }

  class Iterator : public InputIterator<IgnoreErrorsDataset> {
   public:
    using InputIterator::InputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (true) {
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        Status s = NextInput(c, out, end);
        if (s.ok()) return s;
        // An input may fail and end at once; the end comes again at the next
        // pull.
        *end = false;
        if (dataset().warn_) {
          std::fprintf(stderr, "Error raised with error message %s\n",
                       std::string(s.message()).c_str());
        }
      }
    }
    Status Save(PullContext& c, StateWriter& w) override {
      if (input_) return input_->Save(c, w);
      w.PutMark(prefix(), FullKey(prefix(), "input_impls_empty"));
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      if (r.Has(prefix(), FullKey(prefix(), "input_impls_empty"))) {
        input_.reset();
        return OkStatus();
      }
      return input_->Restore(c, r);
    }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const bool warn_;
};

class SleepDataset : public InputDataset {
 public:
  SleepDataset(ElementSpec spec, DatasetPtr input, int64_t micros)
      : InputDataset(std::move(spec), std::move(input)), micros_(micros) {}
  StringView kind() const override { return "Sleep"; }

  class Iterator : public KeptInputIterator<SleepDataset> {
   public:
    using KeptInputIterator::KeptInputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      using Clock = std::chrono::steady_clock;
      const auto until =
          Clock::now() + std::chrono::microseconds(dataset().micros_);
      for (auto now = Clock::now(); now < until; now = Clock::now()) {
        HR_RETURN_IF_ERROR(CheckStop());
        std::this_thread::sleep_for(std::min<Clock::duration>(
            until - now, std::chrono::milliseconds(20)));
      }
      return NextInput(c, out, end);
    }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t micros_;
};

std::string Elements(int64_t n) {
  return absl::StrCat(n, n == 1 ? " element" : " elements");
}

class AssertCardinalityDataset : public InputDataset {
 public:
  AssertCardinalityDataset(ElementSpec spec, DatasetPtr input, int64_t n)
      : InputDataset(std::move(spec), std::move(input)), n_(n) {}
  StringView kind() const override { return "AssertCardinality"; }
  int64_t Count() const override { return n_; }

  class Iterator : public KeptInputIterator<AssertCardinalityDataset> {
   public:
    using KeptInputIterator::KeptInputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      HR_RETURN_IF_ERROR(NextInput(c, out, end));
      at_ += !*end;
      const int64_t n = dataset().n_;
      if (n == kUnknownCardinality) return OkStatus();
      if (*end && at_ != n) {
        if (n == kInfiniteCardinality) {
          return FailedPrecondition(
              "Input dataset was expected to contain an infinite number of "
              "elements but contained only ",
              Elements(at_), ".");
        }
        return FailedPrecondition("Input dataset was expected to contain ",
                                  Elements(n), " but contained only ",
                                  Elements(at_), ".");
      }
      if (!*end && n >= 0 && at_ > n) {
        return FailedPrecondition("Input dataset was expected to contain ",
                                  Elements(n), " but contained at least ",
                                  Elements(at_), ".");
      }
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), FullKey(prefix(), "num_elements"), at_);
      return KeptInputIterator::Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(
          at_, r.GetCount(prefix(), FullKey(prefix(), "num_elements")));
      return KeptInputIterator::Restore(c, r);
    }

   private:
    int64_t at_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t n_;
};

Status MakeUnique(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  // Upstream's limits, though the encoded key would do for any element.
  if (input->width() != 1) {
    return InvalidArgument(
        "UniqueDataset only supports inputs with a single component.");
  }
  const DType dtype = input->spec().types[0];
  if (dtype != DType::kInt32 && dtype != DType::kInt64 &&
      dtype != DType::kString) {
    return InvalidArgument(
        "UniqueDataset only supports inputs with a single `tf.int32`, "
        "`tf.int64`, or `tf.string` component.");
  }
  return SetDataset<UniqueDataset>(c, std::move(spec), std::move(input));
}

Status MakeIgnoreErrors(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  return SetDataset<IgnoreErrorsDataset>(c, std::move(spec), std::move(input),
                                         c.op().bool_attr("log_warning"));
}

Status MakeSleep(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t micros,
                      IntInput(c, 1, "sleep_microseconds"));
  // More than a year is taken for as long.
  constexpr int64_t kMost = int64_t{365} * 24 * 3600 * 1000000;
  return SetDataset<SleepDataset>(c, std::move(spec), std::move(input),
                                  std::min(micros, kMost));
}

Status MakeAssertCardinality(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t n, IntInput(c, 1, "cardinality"));
  return SetDataset<AssertCardinalityDataset>(c, std::move(spec),
                                              std::move(input), n);
}

HR_OP(UniqueDataset)
    .Input("input_dataset: variant")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("Each element once.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeUnique>);

HR_OP(IgnoreErrorsDataset)
    .Input("input_dataset: variant")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("log_warning: bool = false")
    .Doc("The elements without those that fail.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeIgnoreErrors>);

HR_OP(AssertCardinalityDataset)
    .Input("input_dataset: variant")
    .Input("cardinality: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The elements, whose number is promised and checked.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeAssertCardinality>);

[[maybe_unused]] const bool kExperimentalIgnoreErrors = RegisterLike(
    "ExperimentalIgnoreErrorsDataset", "IgnoreErrorsDataset", WithoutMetadata);
[[maybe_unused]] const bool kExperimentalUnique =
    RegisterLike("ExperimentalUniqueDataset", "UniqueDataset", WithoutMetadata);

HR_OP(SleepDataset)
    .Input("input_dataset: variant")
    .Input("sleep_microseconds: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The elements, before each of which the walk sleeps.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeSleep>);
[[maybe_unused]] const bool kExperimentalSleep =
    RegisterLike("ExperimentalSleepDataset", "SleepDataset");

}  // namespace
}  // namespace headrace
