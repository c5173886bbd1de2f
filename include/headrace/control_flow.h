// Branches and loops over tensors, eager and traced: tf.cond, tf.while_loop and
// what is made of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/structure.h"
#include "headrace/tensor.h"

namespace headrace::tf {

struct WhileOptions {
  // The loop ends after so many turns; null: no such end. An int32 or int64
  // scalar.
  Tensor maximum_iterations = {};
  // What the tensors of the loop variables are like in every turn, in order
  // (-1: any size); none: as they enter. Only traced loops look at them.
  std::vector<TensorShape> shape_invariants = {};
  int64_t parallel_iterations = 10;
  std::string name = "while";
};
struct RowsOptions {
  bool reverse = false;  // from the last row to the first
  int64_t parallel_iterations = 10;
  std::string name = "map";
};

namespace internal {

using BodyFn = std::function<void(Reader& args, Parts& results)>;

// Whether ops are recorded here, not run.
HR_API bool IsTracing();
// Of a scalar; kInvalidArgument for other shapes. Also asks whether this
// thread's work is to end.
HR_API bool TruthOf(const Tensor& pred);
// The branch to run: `index`, or the last one where there is no such.
HR_API size_t BranchOf(const Tensor& index, size_t count);
HR_API void TracedIf(const Tensor& pred, const BodyFn& then,
                     const BodyFn& otherwise, Taken result);
HR_API void TracedCase(const Tensor& index, const std::vector<BodyFn>& branches,
                       Taken result);
HR_API void TracedWhile(Given vars, const BodyFn& cond, const BodyFn& body,
                        const WhileOptions& options, Taken result);
// Looks at loop variables that are not traced, turn by turn.
class HR_API EagerLoop {
 public:
  EagerLoop(Given vars, const WhileOptions& options);
  ~EagerLoop();
  bool MayTurn();           // false after maximum_iterations
  void Check(Given after);  // they must stay of one structure and dtype

 private:
  struct State;
  std::unique_ptr<State> state_;
};
// `step` takes (carried, row) and gives (carried, given). The result is a pair
// of what is carried at last and of all that was given, stacked.
HR_API void OverRows(const char* what, Given carried, Given rows,
                     const BodyFn& step, const RowsOptions& options,
                     Taken result);
[[noreturn]] HR_API void RefuseFor(const char* what, const std::string& why);

// f(vars), or f(a, b, ...) where they are a tuple and f takes its items.
template <typename F, typename V>
decltype(auto) Applied(const F& f, const V& vars) {
  if constexpr (std::is_invocable_v<const F&, const V&>) {
    return f(vars);
  } else {
    return std::apply(f, vars);
  }
}

template <typename F>
BodyFn BranchBody(const F& f) {
  return [&f](Reader&, Parts& results) {
    using R = std::invoke_result_t<const F&>;
    if constexpr (std::is_void_v<R>) {
      f();
      results.AddNone();
    } else {
      StructureTraits<std::decay_t<R>>::TakeApart(results, f());
    }
  };
}

}  // namespace internal

// true_fn() where the scalar `pred` (a bool, or a number that is not 0) holds,
// else false_fn(): functions without arguments that give the same structure, or
// nothing. Traced, both are recorded and one runs: an If op, with the shapes on
// which both agree. Gradients flow through the branch that ran, to any order.
// Throws kInvalidArgument where `pred` is no scalar, and where traced branches
// differ in structure or dtypes.
template <typename T, typename F>
auto Cond(const Tensor& pred, const T& true_fn, const F& false_fn) {
  using R = std::decay_t<std::invoke_result_t<const T&>>;
  static_assert(std::is_same_v<R, std::decay_t<std::invoke_result_t<const F&>>>,
                "both branches give the same type");
  if (!internal::IsTracing()) {
    return internal::TruthOf(pred) ? R(true_fn()) : R(false_fn());
  }
  return internal::Result<R>([&](internal::Taken result) {
    internal::TracedIf(pred, internal::BranchBody(true_fn),
                       internal::BranchBody(false_fn), result);
  });
}

// What the branch that the int32 scalar `index` names gives; the default, or
// without one the last branch, where there is none. As Cond: a Case op.
// kInvalidArgument without any branch.
template <typename R>
R SwitchCase(const Tensor& index, std::vector<std::function<R()>> branches,
             std::function<R()> otherwise = nullptr) {
  if (branches.empty()) {
    internal::RefuseFor("SwitchCase", "at least one branch is wanted");
  }
  if (otherwise) branches.push_back(std::move(otherwise));
  if (!internal::IsTracing()) {
    return branches[internal::BranchOf(index, branches.size())]();
  }
  return internal::Result<R>([&](internal::Taken result) {
    std::vector<internal::BodyFn> bodies;
    for (const auto& branch : branches) {
      bodies.push_back(internal::BranchBody(branch));
    }
    internal::TracedCase(index, bodies, result);
  });
}

// What the function of the first predicate that holds gives, else the default:
// Conds, one in the other.
template <typename R>
R Case(const std::vector<std::pair<Tensor, std::function<R()>>>& predicates,
       const std::function<R()>& otherwise) {
  std::function<R()> chain = otherwise;
  for (auto p = predicates.rbegin(); p != predicates.rend(); ++p) {
    chain = [pred = p->first, then = p->second, rest = chain] {
      return Cond(pred, then, rest);
    };
  }
  return chain();
}

// `vars`, a structure of tensors, after body(vars) took their place as often as
// cond(vars), a scalar, held. Where they are a std::tuple, both functions may
// take its items. Traced, it is a While op. Gradients flow through, to any
// order. Throws kInvalidArgument where the body gives another structure or
// dtype and, traced, a shape that shape_invariants (or the shapes that enter)
// do not allow; values among the variables must stay what they are.
// kCancelled and kDeadlineExceeded between turns.
template <typename C, typename B, typename V>
V While(const C& cond, const B& body, V vars,
        const WhileOptions& options = {}) {
  if (!internal::IsTracing()) {
    internal::EagerLoop loop(internal::Given::Of(vars), options);
    while (loop.MayTurn() && internal::TruthOf(internal::Applied(cond, vars))) {
      vars = internal::Applied(body, std::as_const(vars));
      loop.Check(internal::Given::Of(vars));
    }
    return vars;
  }
  return internal::Result<V>([&](internal::Taken result) {
    internal::TracedWhile(
        internal::Given::Of(vars),
        [&](internal::Reader& args, internal::Parts& results) {
          const V now = StructureTraits<V>::PutTogether(args);
          results.AddTensor(internal::Applied(cond, now));
        },
        [&](internal::Reader& args, internal::Parts& results) {
          const V now = StructureTraits<V>::PutTogether(args);
          const V next = internal::Applied(body, now);
          StructureTraits<V>::TakeApart(results, next);
        },
        options, result);
  });
}

// fn(row) for every row of the tensors in `rows` (a structure; their first
// sizes agree), the results stacked. Traced, it is a loop, and `fn` is recorded
// a second time to learn its results' dtypes. kInvalidArgument for rows without
// tensors, scalars, lengths that differ, and results that do not stack.
template <typename F, typename E>
auto Map(const F& fn, const E& rows, const RowsOptions& options = {}) {
  using R = std::decay_t<std::invoke_result_t<const F&, const E&>>;
  using Pair = std::pair<std::tuple<>, R>;
  const std::tuple<> none;
  std::optional<Pair> result;
  internal::OverRows(
      "Map", internal::Given::Of(none), internal::Given::Of(rows),
      [&](internal::Reader& args, internal::Parts& results) {
        args.TakeItems(2);
        args.TakeItems(0);
        const E row = StructureTraits<E>::PutTogether(args);
        StructureTraits<Pair>::TakeApart(results, Pair{{}, fn(row)});
      },
      options, internal::Taken::Into(&result));
  return std::move(result->second);
}

// fn(state, row) takes the state's place for every row; all states but the
// first, stacked. The state keeps its dtypes and shapes. Errors as Map's.
template <typename F, typename E, typename S>
S Scan(const F& fn, const E& rows, const S& initializer,
       const RowsOptions& options = {.name = "scan"}) {
  using Pair = std::pair<S, S>;
  std::optional<Pair> result;
  internal::OverRows(
      "Scan", internal::Given::Of(initializer), internal::Given::Of(rows),
      [&](internal::Reader& args, internal::Parts& results) {
        args.TakeItems(2);
        const S state = StructureTraits<S>::PutTogether(args);
        const E row = StructureTraits<E>::PutTogether(args);
        const S next = fn(state, row);
        StructureTraits<Pair>::TakeApart(results, Pair{next, next});
      },
      options, internal::Taken::Into(&result));
  return std::move(result->second);
}

// The same, of which only the last state is wanted: tf.foldl, with `reverse`
// tf.foldr.
template <typename F, typename E, typename S>
S Fold(const F& fn, const E& rows, const S& initializer,
       const RowsOptions& options = {.name = "fold"}) {
  using Pair = std::pair<S, std::tuple<>>;
  std::optional<Pair> result;
  internal::OverRows(
      "Fold", internal::Given::Of(initializer), internal::Given::Of(rows),
      [&](internal::Reader& args, internal::Parts& results) {
        args.TakeItems(2);
        const S state = StructureTraits<S>::PutTogether(args);
        const E row = StructureTraits<E>::PutTogether(args);
        StructureTraits<Pair>::TakeApart(results, Pair{fn(state, row), {}});
      },
      options, internal::Taken::Into(&result));
  return std::move(result->first);
}

}  // namespace headrace::tf
