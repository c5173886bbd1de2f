// ParseExampleDataset and its kin: batches of serialised Examples as their
// features, by the ops that parse and that pack ragged tensors.
#include <map>
#include <set>

#include "data/dataset_op.h"
#include "op/op_like.h"
#include "op/registry.h"
#include "op/run_once.h"
#include "tensor/tensor_variant.h"

namespace headrace {
namespace {

using Names = std::vector<std::string>;
using Types = std::vector<DType>;

// An op that is run again and again.
class BoundOp {
 public:
  static StatusOr<BoundOp> Make(const char* name, const Types& inputs,
                                const AttrMap& attrs) {
    BoundOp b;
    HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp(name));
    HR_ASSIGN_OR_RETURN(b.op_, ResolveOp(*def, inputs, attrs));
    HR_ASSIGN_OR_RETURN(b.kernel_, BindKernel(*b.op_));
    return b;
  }
  StatusOr<std::vector<Tensor>> operator()(std::vector<Tensor> inputs,
                                           const RunServices& services) const {
    std::vector<Tensor> outputs(op_->num_outputs());
    std::vector<Tensor*> in, out;
    for (Tensor& t : inputs) in.push_back(&t);
    for (Tensor& t : outputs) out.push_back(&t);
    HR_RETURN_IF_ERROR(RunOnce(*op_, *kernel_, in, out, services));
    return outputs;
  }
  const ResolvedOp& op() const { return *op_; }

 private:
  ResolvedOpPtr op_;
  std::shared_ptr<Kernel> kernel_;
};

// What is asked of each Example.
struct Wanted {
  Names sparse_keys, dense_keys, ragged_keys;
  Types sparse_types, dense_types, ragged_types, split_types;
  std::vector<Shape> dense_shapes;
  std::vector<Tensor> defaults;

  Status CheckCounts() const {
    const auto check = [](StringView a, size_t n, StringView b, size_t m) {
      if (n == m) return OkStatus();
      return InvalidArgument("Expected len(", a, ") == len(", b,
                             ") but got: ", n, " vs. ", m);
    };
    HR_RETURN_IF_ERROR(check("dense_defaults", defaults.size(), "dense_keys",
                             dense_keys.size()));
    HR_RETURN_IF_ERROR(check("dense_shapes", dense_shapes.size(), "dense_keys",
                             dense_keys.size()));
    HR_RETURN_IF_ERROR(check("sparse_keys", sparse_keys.size(), "sparse_types",
                             sparse_types.size()));
    HR_RETURN_IF_ERROR(check("ragged_keys", ragged_keys.size(),
                             "ragged_value_types", ragged_types.size()));
    HR_RETURN_IF_ERROR(check("ragged_keys", ragged_keys.size(),
                             "ragged_split_types", split_types.size()));
    std::set<StringView> seen;
    for (const Names* keys : {&dense_keys, &sparse_keys, &ragged_keys}) {
      for (const std::string& key : *keys) {
        if (!seen.insert(key).second) {
          return InvalidArgument("Duplicate key not allowed: ", key);
        }
      }
    }
    return OkStatus();
  }
};

// Immutable: parses batches.
class Parser {
 public:
  static StatusOr<std::shared_ptr<const Parser>> Make(Wanted w) {
    HR_RETURN_IF_ERROR(w.CheckCounts());
    auto parser = std::make_shared<Parser>();
    Types inputs(5, DType::kString);
    inputs.insert(inputs.end(), w.dense_types.begin(), w.dense_types.end());
    const AttrMap attrs = {
        {"num_sparse", static_cast<int64_t>(w.sparse_keys.size())},
        {"sparse_types", w.sparse_types},
        {"Tdense", w.dense_types},
        {"dense_shapes", w.dense_shapes},
        {"ragged_value_types", w.ragged_types},
        {"ragged_split_types", w.split_types}};
    HR_ASSIGN_OR_RETURN(parser->parse_,
                        BoundOp::Make("ParseExampleV2", inputs, attrs));
    for (size_t i = 0; i < w.ragged_keys.size(); ++i) {
      HR_ASSIGN_OR_RETURN(
          parser->pack_.emplace_back(),
          BoundOp::Make("RaggedTensorToVariant",
                        {w.split_types[i], w.ragged_types[i]},
                        {{"RAGGED_RANK", 1}, {"batched_input", false}}));
    }
    parser->wanted_ = std::move(w);
    return std::shared_ptr<const Parser>(std::move(parser));
  }

  // The features, sorted by their keys.
  Status operator()(const Tensor& examples, const RunServices& services,
                    Element* out) const {
    const Wanted& w = wanted_;
    std::vector<Tensor> inputs = {
        examples.WithShape(Shape{examples.num_elements()}),
        Tensor::Vector<std::string>({}),
        Tensor::Vector<std::string>(w.sparse_keys),
        Tensor::Vector<std::string>(w.dense_keys),
        Tensor::Vector<std::string>(w.ragged_keys)};
    inputs.insert(inputs.end(), w.defaults.begin(), w.defaults.end());
    HR_ASSIGN_OR_RETURN(std::vector<Tensor> found,
                        parse_(std::move(inputs), services));
    const auto at = [&](int list, size_t i) -> Tensor& {
      return found[parse_.op().output_range(list).begin + i];
    };
    std::map<StringView, Tensor> by_key;
    for (size_t i = 0; i < w.sparse_keys.size(); ++i) {
      HR_ASSIGN_OR_RETURN(Tensor packed,
                          Tensor::Allocate(DType::kVariant, Shape{3}));
      for (int k = 0; k < 3; ++k) {
        packed.data<Variant>()[k] = TensorInVariant(std::move(at(k, i)));
      }
      by_key[w.sparse_keys[i]] = std::move(packed);
    }
    for (size_t i = 0; i < w.dense_keys.size(); ++i) {
      by_key[w.dense_keys[i]] = std::move(at(3, i));
    }
    for (size_t i = 0; i < w.ragged_keys.size(); ++i) {
      HR_ASSIGN_OR_RETURN(auto packed,
                          pack_[i]({at(5, i), at(4, i)}, services));
      by_key[w.ragged_keys[i]] = std::move(packed[0]);
    }
    out->clear();
    for (auto& [_, t] : by_key) out->push_back(std::move(t));
    return OkStatus();
  }
  size_t width() const {
    return wanted_.sparse_keys.size() + wanted_.dense_keys.size() +
           wanted_.ragged_keys.size();
  }

 private:
  Wanted wanted_;
  BoundOp parse_;
  std::vector<BoundOp> pack_;
};

class ParsedDataset : public InputDataset {
 public:
  ParsedDataset(ElementSpec spec, DatasetPtr input,
                std::shared_ptr<const Parser> parser, bool second)
      : InputDataset(std::move(spec), std::move(input)),
        parser_(std::move(parser)),
        second_(second) {}
  StringView kind() const override {
    return second_ ? "ParseExampleV2" : "ParseExample";
  }

  // A batch is parsed on several threads, one batch at a time.
  class Iterator : public KeptInputIterator<ParsedDataset> {
   public:
    using KeptInputIterator::KeptInputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      Element element;
      HR_RETURN_IF_ERROR(NextInput(c, &element, end));
      if (*end) return OkStatus();
      HR_RETURN_IF_ERROR((*dataset().parser_)(element[0], c.services, out));
      return CheckElement(*out);
    }

   private:
    Status CheckElement(const Element& element) const {
      const ElementSpec& spec = dataset().spec();
      for (size_t i = 0; i < element.size(); ++i) {
        if (element[i].dtype() != spec.types[i]) {
          return InvalidArgument(
              "Got wrong type for FastParseExample return value ", i,
              " (expected ", DTypeName(spec.types[i]), ", got ",
              DTypeName(element[i].dtype()), ").");
        }
        if (!spec.shapes[i].CompatibleWith(element[i].shape())) {
          return InvalidArgument(
              "Got wrong shape for FastParseExample return value ", i,
              " (expected ", spec.shapes[i], ", got ", element[i].shape(),
              ").");
        }
      }
      return OkStatus();
    }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::shared_ptr<const Parser> parser_;
  const bool second_;
};

StatusOr<Wanted> WantedOf(const KernelContext& c) {
  const ResolvedOp& op = c.op();
  Wanted w;
  w.sparse_keys = op.attr<Names>("sparse_keys");
  w.dense_keys = op.attr<Names>("dense_keys");
  w.sparse_types = op.attr<Types>("sparse_types");
  w.dense_types = op.attr<Types>("Tdense");
  w.dense_shapes = op.attr<std::vector<Shape>>("dense_shapes");
  if (op.attrs().Find("ragged_keys") != nullptr) {
    w.ragged_keys = op.attr<Names>("ragged_keys");
    w.ragged_types = op.attr<Types>("ragged_value_types");
    w.split_types = op.attr<Types>("ragged_split_types");
  }
  const ArgRange defaults = op.input_range("dense_defaults");
  for (int i = defaults.begin; i < defaults.end; ++i) {
    if (c.input(i).counted()) {
      w.defaults.push_back(c.input(i));
    } else {
      HR_ASSIGN_OR_RETURN(w.defaults.emplace_back(), c.input(i).Clone());
    }
  }
  return w;
}

Status MakeParsed(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t calls,
                      IntInput(c, 1, "num_parallel_calls"));
  if (calls <= 0 && calls != -1) {
    return InvalidArgument("num_parallel_calls must be greater than zero.");
  }
  const std::string* order = c.op().attrs().Get<std::string>("deterministic");
  if (order != nullptr && *order != "true" && *order != "false" &&
      *order != "default") {
    return InvalidArgument("Unrecognized determinism policy: ", *order);
  }
  if (input->width() != 1 || input->spec().types[0] != DType::kString) {
    return InvalidArgument(
        "Examples are parsed of a dataset of serialized ones, strings; the "
        "input has ",
        input->width(), " components");
  }
  HR_ASSIGN_OR_RETURN(Wanted wanted, WantedOf(c));
  HR_ASSIGN_OR_RETURN(auto parser, Parser::Make(std::move(wanted)));
  if (parser->width() != spec.types.size()) {
    return InvalidArgument("Expected len(output_types) == ", parser->width(),
                           " but got: ", spec.types.size());
  }
  return SetDataset<ParsedDataset>(c, std::move(spec), std::move(input),
                                   std::move(parser), order != nullptr);
}

OpBuilder ParsedOp(const char* name) {
  OpBuilder b(name);
  b.Input("input_dataset: variant")
      .Input("num_parallel_calls: int64")
      .Input("dense_defaults: Tdense")
      .Output("handle: variant")
      .Attr("sparse_keys: list(string) >= 0")
      .Attr("dense_keys: list(string) >= 0")
      .Attr("sparse_types: list({float, int64, string}) >= 0")
      .Attr("Tdense: list({float, int64, string}) >= 0")
      .Attr("dense_shapes: list(shape) >= 0")
      .Attr(kOutputTypes)
      .Attr(kOutputShapes)
      .Doc(
          "Batches of serialised Examples parsed: their features, sorted by "
          "their keys.")
      .Shape(ScalarShape)
      .Cpu(ComputeOwn<MakeParsed>);
  return b;
}
OpBuilder WithRagged(OpBuilder b) {
  b.Attr("ragged_keys: list(string) >= 0 = []")
      .Attr("ragged_value_types: list({float, int64, string}) >= 0 = []")
      .Attr("ragged_split_types: list({int32, int64}) >= 0 = []");
  return b;
}
[[maybe_unused]] const OpRegistrar kParsed[] = {
    WithRagged(ParsedOp("ParseExampleDataset").Attr("sloppy: bool = false")),
    WithRagged(ParsedOp("ParseExampleDatasetV2")
                   .Attr("deterministic: string = 'default'")),
    ParsedOp("ExperimentalParseExampleDataset").Attr("sloppy: bool = false"),
};

}  // namespace
}  // namespace headrace
