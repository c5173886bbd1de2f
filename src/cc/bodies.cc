#include "cc/bodies.h"

#include "base/hash_map.h"
#include "cc/compose.h"

namespace headrace::tf::internal {

Tensor ScalarOf(const char* what, const Tensor& t) {
  const headrace::Shape& shape = Access::ValueOf(t).shape();
  if (shape.rank() == 0 || !shape.known_rank()) return t;
  if (!shape.fully_known() || shape.num_elements() == 1) return Reshape(t, {});
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat(what, " must be a scalar, got a tensor of shape ",
                     t.shape().ToString()));
}

Tokens WithTensors(TokenSpan tokens, absl::Span<const Value> tensors) {
  Signature out;
  size_t next = 0;
  for (size_t at = 0, end; at < tokens.size(); at = end) {
    end = BehindItem(tokens, at);
    if (TagAt(tokens, at) == Signature::kTensor) {
      out.AddTensor(tensors[next++]);
      continue;
    }
    if (TagAt(tokens, at) == Signature::kVariable) ++next;
    for (size_t i = at; i < end; ++i) out.AddToken(tokens[i]);
  }
  return Tokens(out.tokens().begin(), out.tokens().end());
}

Tokens TupleOf(std::initializer_list<TokenSpan> items) {
  Tokens tokens = {Signature::Token(Signature::kTuple, items.size())};
  for (const TokenSpan& item : items) {
    tokens.insert(tokens.end(), item.begin(), item.end());
  }
  return tokens;
}

size_t BehindStructure(TokenSpan tokens, size_t at) {
  size_t behind = at;
  const SignatureItem item = ReadItem(tokens, &behind);
  int64_t items = 0;
  if (item.tag == Signature::kTuple || item.tag == Signature::kList) {
    items = item.number;
  } else if (item.tag == Signature::kDict) {
    items = 2 * item.number;  // keys, too
  }
  for (; items > 0; --items) behind = BehindStructure(tokens, behind);
  return behind;
}

std::string Difference(TokenSpan a, TokenSpan b) {
  if (Join(a, b)) return "";
  const std::vector<SignaturePart> x = PartsOfResults(a), y = PartsOfResults(b);
  const auto item = [](TokenSpan tokens, const SignaturePart& p) {
    return tokens.subspan(p.at, BehindItem(tokens, p.at) - p.at);
  };
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    if (x[i].path == y[i].path && Join(item(a, x[i]), item(b, y[i]))) continue;
    return absl::StrCat(x[i].path, " is ", x[i].text, " and ", y[i].path,
                        " is ", y[i].text);
  }
  return absl::StrCat("there are ", x.size(), " and ", y.size(), " parts");
}

Signature RunBody(const BodyFn& body, TokenSpan tokens,
                  absl::Span<const Value> args) {
  const Reader::Source source{.tokens = tokens, .values = args};
  Reader reader(&source);
  Signature results;
  Parts parts(&results);
  body(reader, parts);
  return results;
}

void HandOver(TokenSpan tokens, absl::Span<const Value> values, Taken result) {
  const Reader::Source source{.tokens = tokens, .values = values};
  Reader reader(&source);
  result.put_together(reader, result.value);
}

namespace {

// What bodies take of their surroundings, each value once. Tapes are told that
// it is read.
class Captures {
 public:
  void Add(const BodyGraph& body) {
    for (const Value& v : body.captures()) {
      if (seen_.insert(v.id()).second) all_.push_back(v);
    }
  }
  const std::vector<Value>& Read() const {
    TellCapturesRead(all_);
    return all_;
  }

 private:
  std::vector<Value> all_;
  HashSet<uint64_t> seen_;
};

std::vector<headrace::DType> TypesOf(const std::vector<Value>& values) {
  std::vector<headrace::DType> types;
  for (const Value& v : values) types.push_back(v.dtype());
  return types;
}

// What both shapes allow.
headrace::Shape MostGeneral(const headrace::Shape& a,
                            const headrace::Shape& b) {
  if (a.rank() != b.rank()) return headrace::Shape::UnknownRank();
  headrace::Shape general = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] != b[i]) general.set_dim(i, headrace::Shape::kUnknown);
  }
  return general;
}

// The first outputs of a call, one Identity each, as Python's have.
std::vector<Value> Identities(const ValueList& outputs, size_t count) {
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(CallOp("Identity", {outputs[i]})[0]);
  }
  return values;
}

}  // namespace

std::vector<Value> EmitBranches(Choice choice, const Tensor& selector,
                                const std::vector<Branch>& branches) {
  Captures captured;
  for (const Branch& b : branches) captured.Add(*b.graph);
  const std::vector<Value>& captures = captured.Read();
  const std::vector<Value>& first = branches[0].graph->results();
  std::vector<headrace::Shape> shapes;
  for (const Value& v : first) shapes.push_back(v.shape());
  std::vector<FunctionPtr> functions;  // held until the node holds them
  std::vector<FuncRef> refs;
  bool stateful = false;
  for (const Branch& b : branches) {
    functions.push_back(b.graph->Finish(b.name, captures));
    refs.push_back({functions.back()->name, nullptr});
    stateful = stateful || functions.back()->is_stateful();
    for (size_t i = 0; i < shapes.size(); ++i) {
      shapes[i] = MostGeneral(shapes[i], b.graph->results()[i].shape());
    }
  }
  AttrMap attrs = {{"Tin", TypesOf(captures)},
                   {"Tout", TypesOf(first)},
                   {"output_shapes", std::move(shapes)}};
  const char* op;
  if (choice == Choice::kIf) {
    op = stateful ? "If" : "StatelessIf";
    attrs.Set("then_branch", refs[0]);
    attrs.Set("else_branch", refs[1]);
  } else {
    op = stateful ? "Case" : "StatelessCase";
    attrs.Set("branches", std::move(refs));
  }
  std::vector<Value> inputs = {Access::ValueOf(selector)};
  inputs.insert(inputs.end(), captures.begin(), captures.end());
  return Identities(CallOp(op, inputs, attrs), first.size());
}

std::vector<Value> EmitWhile(const std::string& name,
                             const std::vector<Value>& inputs,
                             const std::vector<headrace::Shape>& shapes,
                             const ValuesFn& cond, const ValuesFn& body,
                             int64_t parallel_iterations) {
  std::vector<ArgSpec> args;
  for (size_t i = 0; i < inputs.size(); ++i) {
    args.push_back(SpecOf(inputs[i]));
    args.back().shape = shapes[i];
  }
  BodyGraph goes_on(args, cond), turn(args, body);
  Captures captured;
  captured.Add(goes_on);
  captured.Add(turn);
  const std::vector<Value>& captures = captured.Read();
  const FunctionPtr holds = goes_on.Finish(name + "_cond", captures);
  const FunctionPtr next =
      turn.Finish(name + "_body", captures, /*hands_on=*/true);
  std::vector<Value> all = inputs;
  std::vector<headrace::Shape> every = shapes;
  for (const Value& v : captures) {
    all.push_back(v);
    every.push_back(v.shape());
  }
  const bool stateful = holds->is_stateful() || next->is_stateful();
  CurrentEmitter()->SetNextName(name);
  return Identities(CallOp(stateful ? "While" : "StatelessWhile", all,
                           {{"T", TypesOf(all)},
                            {"cond", FuncRef{holds->name, nullptr}},
                            {"body", FuncRef{next->name, nullptr}},
                            {"output_shapes", std::move(every)},
                            {"parallel_iterations", parallel_iterations}}),
                    inputs.size());
}

}  // namespace headrace::tf::internal
