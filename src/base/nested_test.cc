#include "base/nested.h"

#include <memory>

#include "gtest/gtest.h"

namespace headrace {
namespace {

int alive = 0;

struct Link {
  Link() { ++alive; }
  virtual ~Link() { --alive; }
};
struct Chain : Link {
  std::shared_ptr<const Link> next, other;
};
struct Owning : Link {
  std::unique_ptr<Link, NestedDelete> next;
};

TEST(Nested, ChainsOfAnyLengthEnd) {
  std::shared_ptr<const Link> last;
  for (int i = 0; i < 300000; ++i) {
    auto c = MakeNested<Chain>();
    c->other = MakeNested<const Link>();
    c->next = std::move(last);
    last = std::move(c);
  }
  last.reset();
  EXPECT_EQ(alive, 0);
  std::unique_ptr<Link, NestedDelete> first;
  for (int i = 0; i < 300000; ++i) {
    auto o = std::make_unique<Owning>();
    o->next = std::move(first);
    first = std::move(o);
  }
  first.reset();
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace headrace
