// A dataset of what a C++ function gives.
#include "cc/dataset/state.h"
#include "cc/errors.h"
#include "data/dataset.h"
#include "data/state.h"

namespace headrace::tf::data {
namespace {

using NextFunction = Dataset::NextFunction;
using Begin = std::function<NextFunction()>;

using Components = Element;

class CallableDataset : public headrace::Dataset {
 public:
  CallableDataset(headrace::ElementSpec spec, Begin begin)
      : Dataset(std::move(spec)), begin_(std::move(begin)) {}
  StringView kind() const override { return "Generator"; }

  class Iterator : public IteratorOf<CallableDataset> {
   public:
    using IteratorOf::IteratorOf;

    Status Next(PullContext& c, headrace::Element* out, bool* end) override {
      HR_RETURN_IF_ERROR(c.CheckCancelled());
      *end = at_end_;
      if (at_end_) return OkStatus();
      Components element;
      // The caller's function may throw, and no exception may go through the
      // engine.
      Status status =
          internal::Caught("a dataset's generator", [&]() -> Status {
            // Each walk begins anew.
            if (!next_) next_ = dataset().begin_();
            if (!next_)
              return InvalidArgument("a dataset's generator is empty");
            at_end_ = !next_(&element);
            return OkStatus();
          });
      HR_RETURN_IF_ERROR(status);
      *end = at_end_;
      if (at_end_) {
        // What the generator holds goes at its end.
        next_ = nullptr;
        return OkStatus();
      }
      ++given_;
      return Take(element, out);
    }

    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), "given", given_);
      if (at_end_) w.PutMark(prefix(), "at_end");
      return OkStatus();
    }

    // Begins again and passes over what had been given.
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(const int64_t given, r.GetInt(prefix(), "given"));
      next_ = nullptr;
      given_ = 0;
      at_end_ = false;
      headrace::Element passed;
      bool end = false;
      while (given_ < given && !end) {
        const int64_t before = given_;
        // An element that does not fit was given too.
        Status s = Next(c, &passed, &end);
        // An error of the generator itself, which came before an element: it
        // would come again for ever.
        if (given_ == before && !end) return s;
      }
      if (r.Has(prefix(), "at_end")) at_end_ = true;
      return OkStatus();
    }

   private:
    Status Take(const Components& from, headrace::Element* out) {
      const headrace::ElementSpec& spec = dataset().spec();
      if (from.size() != spec.types.size()) {
        return InvalidArgument("a generator gave ", from.size(),
                               " tensors, not ", spec.types.size());
      }
      out->clear();
      for (size_t i = 0; i < from.size(); ++i) {
        if (!from[i]) return InvalidArgument("a generator gave a null tensor");
        const Value& v = internal::Access::ValueOf(from[i]);
        if (v.is_symbolic() || v.dtype() != spec.types[i] ||
            !spec.shapes[i].CompatibleWith(v.shape())) {
          return InvalidArgument(
              "a generator gave a tensor of dtype ", DTypeName(v.dtype()),
              " and shape ", v.shape().ToString(), ", not ",
              DTypeName(spec.types[i]), " and ", spec.shapes[i].ToString());
        }
        out->push_back(v.tensor());
      }
      return OkStatus();
    }

    NextFunction next_;
    int64_t given_ = 0;
    bool at_end_ = false;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const Begin begin_;
};

}  // namespace

Dataset Dataset::FromGenerator(std::function<NextFunction()> begin,
                               const ElementSpec& spec) {
  if (!begin || spec.dtypes.empty() ||
      spec.dtypes.size() != spec.shapes.size()) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "FromGenerator: no function, or a spec of other sizes");
  }
  headrace::ElementSpec core;
  for (const DType d : spec.dtypes) core.types.push_back(internal::Core(d));
  for (const TensorShape& s : spec.shapes) {
    core.shapes.push_back(internal::Core(s));
  }
  auto made = std::make_shared<const CallableDataset>(std::move(core),
                                                      std::move(begin));
  return State::Make(
      {internal::Access::Wrap(Value(DatasetTensor(std::move(made)))), spec});
}

}  // namespace headrace::tf::data
