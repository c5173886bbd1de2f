#include "op/op_def.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "op/op_spec.h"
#include "op/registry.h"
#include "op/rendezvous.h"

namespace headrace {
namespace {

[[noreturn]] void Mistake(const OpDef& def, StringView spec, StringView why) {
  std::fprintf(stderr, "headrace: definition of op %s: '%.*s': %.*s\n",
               def.name.c_str(), static_cast<int>(spec.size()), spec.data(),
               static_cast<int>(why.size()), why.data());
  // At start-up, before anything runs: a definition is our own source, and no
  // caller could do anything about it.
  std::abort();
}

// The parsed spec of an op of ours.
template <typename T>
T OrMistake(const OpDef& def, StringView spec, StatusOr<T> parsed) {
  if (!parsed.ok()) Mistake(def, spec, parsed.status().message());
  return *std::move(parsed);
}

uint32_t Mask(std::initializer_list<int> bits) {
  uint32_t mask = 0;
  for (int b : bits) mask |= 1u << b;
  return mask;
}

}  // namespace

const AttrDef* OpDef::FindAttr(StringView attr) const {
  for (const AttrDef& a : attrs) {
    if (a.name == attr) return &a;
  }
  return nullptr;
}

int OpDef::FindInput(StringView input) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == input) return static_cast<int>(i);
  }
  return -1;
}

bool OpDef::IsInferred(StringView attr) const {
  for (const ArgDef& a : inputs) {
    if (a.type_attr == attr || a.number_attr == attr ||
        a.type_list_attr == attr) {
      return true;
    }
  }
  return false;
}

OpBuilder::OpBuilder(const char* name) { def_.name = name; }
OpBuilder& OpBuilder::Input(const char* spec) {
  def_.inputs.push_back(OrMistake(def_, spec, ParseArgSpec(spec)));
  return *this;
}
OpBuilder& OpBuilder::Output(const char* spec) {
  def_.outputs.push_back(OrMistake(def_, spec, ParseArgSpec(spec)));
  return *this;
}
OpBuilder& OpBuilder::Attr(const char* spec) {
  def_.attrs.push_back(OrMistake(def_, spec, ParseAttrSpec(spec)));
  return *this;
}
OpBuilder& OpBuilder::Doc(const char* text) {
  def_.doc = std::string(absl::StripAsciiWhitespace(text));
  return *this;
}
OpBuilder& OpBuilder::Stateful() {
  def_.is_stateful = true;
  return *this;
}
OpBuilder& OpBuilder::Commutative() {
  def_.is_commutative = true;
  return *this;
}
OpBuilder& OpBuilder::Aggregate() {
  def_.is_aggregate = true;
  return *this;
}
OpBuilder& OpBuilder::AllowsUninitialized() {
  def_.allows_uninitialized = true;
  return *this;
}
OpBuilder& OpBuilder::Role(OpRole role) {
  def_.role = role;
  if (role == kReceiveRole) def_.is_distributed = true;
  return *this;
}

OpBuilder& OpBuilder::Traits(std::initializer_list<OpTrait> traits) {
  for (OpTrait t : traits) def_.traits.Add(t);
  return *this;
}

OpBuilder& OpBuilder::ValueOfShape(ValueOfShapeFn fn) {
  def_.value_of_shape = fn;
  return *this;
}

OpBuilder& OpBuilder::PartialSizes(PartialSizesFn fn) {
  def_.partial_sizes = fn;
  return *this;
}

OpBuilder& OpBuilder::Simplify(SimplifyFn fn) {
  def_.simplify = fn;
  return *this;
}
OpBuilder& OpBuilder::Vectorize(VectorizeFn fn) {
  def_.vectorize = fn;
  return *this;
}

OpBuilder& OpBuilder::RawName(const char* arg, const char* raw) {
  def_.raw_names.emplace_back(arg, raw);
  return *this;
}

OpBuilder& OpBuilder::Deprecated(int version, const char* explanation) {
  def_.deprecation = {version, explanation};
  return *this;
}
OpBuilder& OpBuilder::Shape(ShapeFn fn) {
  def_.shape_fn = fn;
  return *this;
}
OpBuilder& OpBuilder::Gradient(GradientFn fn) {
  def_.gradient_fn = fn;
  def_.gradient_kind = GradientKind::kFunction;
  return *this;
}
OpBuilder& OpBuilder::GradientSkips(std::initializer_list<int> inputs,
                                    std::initializer_list<int> outputs) {
  def_.gradient_skips_inputs = Mask(inputs);
  def_.gradient_skips_outputs = Mask(outputs);
  return *this;
}
OpBuilder& OpBuilder::NoGradient() {
  def_.gradient_kind = GradientKind::kNotDifferentiable;
  return *this;
}
OpBuilder& OpBuilder::Cpu(KernelFactory factory) {
  def_.cpu_kernel = factory;
  return *this;
}
OpBuilder& OpBuilder::View(int input) {
  def_.view_input = input;
  return *this;
}
OpBuilder& OpBuilder::InPlace(std::initializer_list<int> inputs) {
  def_.in_place_inputs = Mask(inputs);
  return *this;
}

OpBuilder& OpBuilder::Register() {
  const Status named = ResolveArgSpecs(&def_);
  if (!named.ok()) Mistake(def_, def_.name, named.message());
  internal::AddOp(std::move(def_));
  return *this;
}

}  // namespace headrace
