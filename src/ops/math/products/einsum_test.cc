#include <cmath>
#include <map>

#include "eager/eager_emitter.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

Tensor Numbers(Shape shape) {
  Tensor t = *Tensor::Allocate(DType::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = static_cast<float>(i * 7 % 11) - 5;
  }
  return t;
}

// By the definition: a loop over every assignment of the labels.
void Check(const std::string& a, const std::string& b, const std::string& out) {
  std::map<char, int64_t> size;
  auto shape_of = [&](const std::string& s) {
    Shape shape;
    for (char c : s) {
      size.emplace(c, 2 + (c - 'a') % 4);
      shape.AddDim(size[c]);
    }
    return shape;
  };
  std::vector<Tensor> in{Numbers(shape_of(a))};
  if (!b.empty()) in.push_back(Numbers(shape_of(b)));
  const std::string text = a + (b.empty() ? "" : "," + b) + "->" + out;
  auto r = RunOp("Einsum", in,
                 {{"equation", text}, {"N", static_cast<int>(in.size())}});
  ASSERT_TRUE(r.ok()) << r.status();
  ASSERT_EQ((*r)[0].shape(), shape_of(out)) << text;
  std::vector<double> want((*r)[0].num_elements());
  std::map<char, int64_t> at;
  int64_t total = 1;
  for (auto& [c, n] : size) total *= n;
  auto index = [&](const std::string& s) {
    int64_t i = 0;
    for (char c : s) i = i * size[c] + at[c];
    return i;
  };
  for (int64_t k = 0; k < total; ++k) {
    int64_t rest = k;
    for (auto& [c, n] : size) {
      at[c] = rest % n;
      rest /= n;
    }
    want[index(out)] += in[0].data<float>()[index(a)] *
                        (b.empty() ? 1 : in[1].data<float>()[index(b)]);
  }
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR((*r)[0].data<float>()[i], want[i], 1e-3) << text << " " << i;
  }
}

TEST(Einsum, Equations) {
  Check("ij", "jk", "ik");
  Check("ij", "jk", "ki");
  Check("ji", "kj", "ik");
  Check("bij", "bjk", "bik");
  Check("bthd", "bshd", "bhts");
  Check("bhts", "bshd", "bthd");
  Check("abcd", "dcef", "aefb");
  Check("ij", "ij", "ij");
  Check("ij", "ji", "");
  Check("i", "j", "ij");
  Check("i", "j", "ji");
  Check("ijk", "kl", "ilj");
  Check("iij", "jk", "ik");
  Check("ij", "kl", "");
  Check("ij", "k", "ij");
  Check("ij", "", "ji");
  Check("ii", "", "i");
  Check("ii", "", "");
  Check("i", "", "ii");
  Check("ij", "j", "iij");
  Check("ijk", "", "ki");
}

TEST(Einsum, EllipsisBroadcasts) {
  auto r = RunOp("Einsum", {Numbers({2, 3, 4}), Numbers({1, 4, 5})},
                 {{"equation", "...ij,...jk->...ik"}, {"N", 2}});
  ASSERT_TRUE(r.ok()) << r.status();
  auto want = RunOp("BatchMatMulV2", {Numbers({2, 3, 4}), Numbers({1, 4, 5})});
  ASSERT_TRUE(want.ok());
  ASSERT_EQ((*r)[0].shape(), (Shape{2, 3, 5}));
  EXPECT_EQ(std::memcmp((*r)[0].raw(), (*want)[0].raw(), (*r)[0].bytes()), 0);
}

TEST(Einsum, Errors) {
  auto fails = [](const char* equation, std::vector<Tensor> in) {
    return !RunOp("Einsum", in,
                  {{"equation", equation}, {"N", static_cast<int>(in.size())}})
                .ok();
  };
  EXPECT_TRUE(fails("ij,jk", {Numbers({2, 3}), Numbers({3, 2})}));
  EXPECT_TRUE(fails("ij,jk->ik", {Numbers({2, 3}), Numbers({2, 2})}));
  EXPECT_TRUE(fails("ij->ijk", {Numbers({2, 3})}));
  EXPECT_TRUE(fails("i->i", {Numbers({2, 3})}));
  EXPECT_TRUE(fails("...i->i", {Numbers({2, 3})}));
}

}  // namespace
}  // namespace headrace
