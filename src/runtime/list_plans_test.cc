// Random programs on lists, many of whose values are used again later: in
// plans, where lists change in place, and call by call, against a plain model.
#include <optional>
#include <random>

#include "runtime/test_plan.h"

namespace headrace {
namespace {

// A list of vectors of 2, and what its elements are times the program's input.
struct ListValue {
  Value list;
  std::vector<std::optional<float>> items;
};

class ListProgram {
 public:
  ListProgram(OpScope& s, const Value& x, uint32_t seed)
      : s_(s), x_(x), random_(seed) {
    lists_.push_back(Reserved(4));
  }

  void Statement() {
    ListValue v = Pick();
    const int n = static_cast<int>(v.items.size());
    const int kind = Below(7);
    if (kind == 0 && n > 0) v = WithItem(v, Below(n));
    if (kind == 1) {
      const float k = NextFactor();
      v.items.push_back(k);
      v.list = s_("TensorListPushBack", {v.list, Times(k)});
    }
    if (kind == 2 && n > 0) {
      v.items.pop_back();
      v.list =
          s_.All("TensorListPopBack", {v.list, s_.Int32s({2})}, Floats())[0];
    }
    if (kind == 3) {
      const ListValue other = Pick();
      if (other.items.size() == v.items.size()) v = Sum(v, other);
    }
    if (kind == 4 && n > 0) v = Sum(v, WithItem(Reserved(n), Below(n)));
    if (kind == 5) {
      v.items.resize(Below(8));
      v.list = s_("TensorListResize",
                  {v.list, s_.Int32(static_cast<int>(v.items.size()))});
    }
    if (kind == 6 && n > 0) {
      for (auto& item : v.items) item = item.value_or(0);
      v.list =
          s_("TensorListFromTensor", {Stacked(v), s_.Int32s({2})}, Floats());
    }
    lists_.push_back(std::move(v));
  }

  // Some lists, stacked; `factors`: what they are, times x.
  Values Results(std::vector<std::vector<float>>* factors) {
    Values out;
    for (int i = 0; i < 4; ++i) {
      const ListValue v = i == 0 ? lists_.back() : Pick();
      if (v.items.empty()) continue;
      out.push_back(Stacked(v));
      factors->emplace_back();
      for (const auto& item : v.items) {
        factors->back().push_back(item.value_or(0));
      }
    }
    return out;
  }

 private:
  static AttrMap Floats() { return {{"element_dtype", DType::kFloat}}; }
  int Below(int n) { return static_cast<int>(random_() % n); }
  // One of the latest.
  const ListValue& Pick() {
    return lists_[lists_.size() - 1 -
                  Below(std::min(4, static_cast<int>(lists_.size())))];
  }
  float NextFactor() { return ++factor_; }
  Value Times(float k) { return s_("Mul", {x_, s_.Const(Tensor::Scalar(k))}); }
  ListValue Reserved(int n) {
    ListValue v;
    v.items.resize(n);
    v.list = s_("TensorListReserve", {s_.Int32s({2}), s_.Int32(n)}, Floats());
    return v;
  }
  ListValue WithItem(ListValue v, int i) {
    const float k = NextFactor();
    v.items[i] = k;
    v.list = s_("TensorListSetItem", {v.list, s_.Int32(i), Times(k)});
    return v;
  }
  ListValue Sum(ListValue a, const ListValue& b) {
    for (size_t i = 0; i < a.items.size(); ++i) {
      if (b.items[i]) a.items[i] = a.items[i].value_or(0) + *b.items[i];
    }
    a.list = s_("AddN", {a.list, b.list});
    return a;
  }
  Value Stacked(const ListValue& v) {
    return s_("TensorListStack", {v.list, s_.Int32s({2})}, Floats());
  }

  OpScope& s_;
  const Value x_;
  std::mt19937 random_;
  float factor_ = 0;
  std::vector<ListValue> lists_;
};

TEST(ListPlans, RandomProgramsMakeWhatTheirListsHold) {
  const Tensor x = Tensor::Vector<float>({0.5f, -2});
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::vector<std::vector<float>> factors;
    const Body body = [&](OpScope& s, const Values& in) {
      factors.clear();
      ListProgram program(s, in[0], seed);
      for (int i = 0; i < 30; ++i) program.Statement();
      return program.Results(&factors);
    };
    Compare(body, {x});
    OpScope s;
    const Values out = body(s, {Value(x)});
    for (size_t i = 0; i < out.size(); ++i) {
      const float* data = out[i].tensor().data<float>();
      for (size_t k = 0; k < factors[i].size(); ++k) {
        EXPECT_EQ(data[2 * k], factors[i][k] * 0.5f);
        EXPECT_EQ(data[2 * k + 1], factors[i][k] * -2);
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace headrace
