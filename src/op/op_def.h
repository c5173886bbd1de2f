// What an op is: its signature, shape rule, gradient and kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "op/attr.h"
#include "op/op_traits.h"

namespace headrace {

class GradientContext;
class Kernel;
class PartialSizes;
class ResolvedOp;
class ShapeContext;
class SimplifyContext;
class VectorizeContext;

// One input or output of a signature. Exactly one of the three forms:
//   "x: float", "x: T"             one tensor (type or type_attr)
//   "x: N * float", "x: N * T"     a list of one dtype (number_attr as well)
//   "x: Tin"                       a list of dtypes (type_list_attr)
struct ArgDef {
  std::string name;
  DType type = DType::kInvalid;
  std::string type_attr;
  std::string number_attr;
  std::string type_list_attr;
  bool is_ref = false;
  bool is_list() const {
    return !number_attr.empty() || !type_list_attr.empty();
  }
};

struct AttrDef {
  std::string name;
  AttrKind kind = AttrKind::kNone;
  bool has_default = false;
  AttrValue default_value;
  std::vector<DType> allowed_types;          // empty: any
  std::vector<std::string> allowed_strings;  // empty: any
  bool has_minimum = false;
  int64_t minimum = 0;
  std::string constraint_text;  // as written, for the OpDef's text
};

using ShapeFn = Status (*)(ShapeContext& c);
using GradientFn = Status (*)(GradientContext& g);
// The value of output 0 where it follows from the shape of input 0 alone, and
// that is known well enough.
using ValueOfShapeFn = std::optional<Tensor> (*)(const ResolvedOp& op,
                                                 const Shape& shape);
// What is known of the sizes that a small integer output holds, of which some
// are not known; see op/passes/partial_sizes.h.
using PartialSizesFn = Shape (*)(PartialSizes& c);
// Says what a call in a plan may be replaced by; see op/passes/simplify.h.
using SimplifyFn = Status (*)(SimplifyContext& c);
// Emits the call for many rows at once; see op/vectorize.h.
using VectorizeFn = Status (*)(VectorizeContext& c);
// Binds a kernel to an op's types and attributes (reads them, prepares
// constants). A null pointer: no kernel for these types.
using KernelFactory =
    StatusOr<std::unique_ptr<Kernel>> (*)(const ResolvedOp& op);

enum class GradientKind : uint8_t {
  kNone,               // nobody registered one: asking is an error
  kNotDifferentiable,  // no gradient flows, silently
  kFunction,
};

struct Deprecation {
  int version = 0;  // 0: not deprecated
  std::string explanation;
};

class OpDef {
 public:
  std::string name;
  std::vector<ArgDef> inputs;
  std::vector<ArgDef> outputs;
  std::vector<AttrDef> attrs;
  std::string doc;           // one summary line, then details; our own words
  bool is_stateful = false;  // has effects or state: never merged or dropped
  bool is_commutative = false;
  bool is_aggregate = false;
  bool allows_uninitialized = false;
  bool is_distributed = false;
  Deprecation deprecation;

  ShapeFn shape_fn = nullptr;
  GradientKind gradient_kind = GradientKind::kNone;
  GradientFn gradient_fn = nullptr;
  // Bit i set: the gradient does not read input (output) i, so that a tape
  // need not keep it.
  uint32_t gradient_skips_inputs = 0;
  uint32_t gradient_skips_outputs = 0;
  KernelFactory cpu_kernel = nullptr;
  KernelFactory cuda_kernel = nullptr;
  // Output o is a view of input i's buffer: view_input == i, for output 0.
  int view_input = -1;
  // Bit i set: a kernel may be handed input i's own memory as output 0 when
  // dtype and shape agree and nobody else reads it.
  uint32_t in_place_inputs = 0;
  OpRole role = OpRole::kNone;
  OpTraits traits;
  ValueOfShapeFn value_of_shape = nullptr;
  PartialSizesFn partial_sizes = nullptr;
  SimplifyFn simplify = nullptr;
  VectorizeFn vectorize = nullptr;
  // Inputs and attributes that raw ops take by another name than the wire's.
  std::vector<std::pair<std::string, std::string>> raw_names;
  int id = 0;  // position in the registry

  bool Is(OpRole r) const { return role == r; }
  bool Has(OpTrait t) const { return traits.Has(t); }
  const AttrDef* FindAttr(StringView attr) const;
  int FindInput(StringView input) const;  // -1: none
  // True when attribute `attr` follows from the dtypes or counts of inputs.
  bool IsInferred(StringView attr) const;
};

// Builds an OpDef and registers it; see HR_OP.
class OpBuilder {
 public:
  explicit OpBuilder(const char* name);
  // "x: T", "values: N * T", "ref: Ref(T)".
  OpBuilder& Input(const char* spec);
  OpBuilder& Output(const char* spec);
  // "axis: int = 0", "T: {float, double}", "N: int >= 1",
  // "mode: {'a', 'b'} = 'a'", "Tin: list(type) >= 0", "T: numbertype",
  // "T: realnumbertype", "strides: list(int)".
  OpBuilder& Attr(const char* spec);
  OpBuilder& Doc(const char* text);
  OpBuilder& Stateful();
  OpBuilder& Commutative();
  OpBuilder& Aggregate();
  OpBuilder& AllowsUninitialized();
  OpBuilder& Deprecated(int version, const char* explanation);
  OpBuilder& Shape(ShapeFn fn);
  OpBuilder& Gradient(GradientFn fn);
  // What Gradient's function never reads (positions).
  OpBuilder& GradientSkips(std::initializer_list<int> inputs,
                           std::initializer_list<int> outputs);
  OpBuilder& NoGradient();  // not differentiable
  OpBuilder& Cpu(KernelFactory factory);
  OpBuilder& View(int input = 0);
  OpBuilder& InPlace(std::initializer_list<int> inputs);
  OpBuilder& Role(OpRole role);
  OpBuilder& Traits(std::initializer_list<OpTrait> traits);
  OpBuilder& ValueOfShape(ValueOfShapeFn fn);
  OpBuilder& PartialSizes(PartialSizesFn fn);
  OpBuilder& Simplify(SimplifyFn fn);
  // What tf.vectorized_map makes of the op. Without it rows are done in a loop.
  OpBuilder& Vectorize(VectorizeFn fn);
  // tf.raw_ops takes `arg`, an input or attribute, as `raw`.
  OpBuilder& RawName(const char* arg, const char* raw);
  // Keeps the definition; the first definition error aborts the start-up with
  // its text, as it is a mistake in our own source.
  OpBuilder& Register();

 private:
  OpDef def_;
};

// HR_OP(MatMul).Input("a: T")...; at namespace scope, in the op's own file. A
// macro, as it makes both a string and the name of a variable of the op's name.
#define HR_OP(Name)                                     \
  [[maybe_unused]] static const ::headrace::OpRegistrar \
      hr_op_registrar_##Name = ::headrace::OpBuilder(#Name)

// Finishes a registration; converts from the builder.
struct OpRegistrar {
  OpRegistrar(OpBuilder& b) { b.Register(); }   // NOLINT
  OpRegistrar(OpBuilder&& b) { b.Register(); }  // NOLINT
};

}  // namespace headrace
