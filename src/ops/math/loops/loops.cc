#include "ops/math/loops/loops.h"

#include <memory>

#include "base/hash_map.h"
#include "ops/math/loops/loop_tables.h"

namespace headrace {
namespace {

using Key = std::pair<absl::string_view, int>;
struct Tables {
  HashMap<Key, const LoopEntry*> unary, binary;

  void Add(LoopRows rows) {
    for (int i = 0; i < rows.count; ++i) {
      const LoopEntry& e = rows.rows[i];
      // The first row for a name and type stands: vector loops are added before
      // plain ones.
      (e.unary ? unary : binary).emplace(Key(e.op, e.in), &e);
    }
  }
};

const Tables& AllTables() {
  static const Tables* const tables = [] {
    // Never destroyed: kernels hold pointers into it to the end.
    auto* t = new Tables;
    AtActiveLevel([t](auto level) {
      t->Add(UnaryLoops<level>());
      t->Add(FloatMathLoops<level>());
      t->Add(DoubleMathLoops<level>());
      t->Add(ArithmeticLoops<level>());
      t->Add(DivisionLoops<level>());
      t->Add(CompareLoops<level>());
      t->Add(BitwiseLoops<level>());
      t->Add(ActivationGradLoops<level>());
      t->Add(SpecialLoops<level>());
    });
    t->Add(ComplexMathLoops());
    t->Add(SpecialMathLoops());
    return t;
  }();
  return *tables;
}

const LoopEntry* Find(const HashMap<Key, const LoopEntry*>& map,
                      absl::string_view op, int dtype) {
  const auto it = map.find(Key(op, dtype));
  return it == map.end() ? nullptr : it->second;
}

}  // namespace

const LoopEntry* FindUnaryLoop(absl::string_view op, int dtype) {
  return Find(AllTables().unary, op, dtype);
}
const LoopEntry* FindBinaryLoop(absl::string_view op, int dtype) {
  return Find(AllTables().binary, op, dtype);
}
SelectLoop FindSelectLoop(int size) {
  return AtActiveLevel([&](auto level) { return Select<level>(size); });
}
ClipLoop FindClipLoop(int dtype) {
  return AtActiveLevel([&](auto level) { return Clip<level>(dtype); });
}
ParameterLoop FindParameterLoop(absl::string_view op, int dtype) {
  if (op != "LeakyRelu") return nullptr;
  return AtActiveLevel([&](auto level) { return LeakyReluLoop<level>(dtype); });
}
ParameterLoop2 FindParameterLoop2(absl::string_view op, int dtype) {
  if (op != "LeakyReluGrad") return nullptr;
  return AtActiveLevel(
      [&](auto level) { return LeakyReluGradLoop<level>(dtype); });
}

}  // namespace headrace
