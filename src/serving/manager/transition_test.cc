#include "serving/manager/transition.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace headrace::serving {
namespace {

// "2w 1r+ 3d": version, w(anted) or u(nwanted), and - (out), * (busy),
// + (ready), x (spent), d (out, on demand).
std::vector<VersionView> ViewsOf(StringView text) {
  std::vector<VersionView> views;
  for (size_t i = 0; i + 2 < text.size() + 1; i += 4) {
    VersionView v;
    v.version = text[i] - '0';
    v.wanted = text[i + 1] == 'w';
    const char state = text[i + 2];
    v.state = state == '*'   ? VersionView::kBusy
              : state == '+' ? VersionView::kReady
              : state == 'x' ? VersionView::kSpent
                             : VersionView::kOut;
    v.on_demand = state == 'd';
    views.push_back(v);
  }
  return views;
}

TEST(ModelTransition, KeepsAModelAvailable) {
  constexpr int kNothing = 0;  // +V: load V, -V: unload V
  const struct {
    const char* versions;
    int step;
    const char* why;
  } kRows[] = {
      {"", kNothing, "no versions"},
      {"1w-", 1, "the first version is loaded"},
      {"1w- 2w- 3w-", 3, "the highest first"},
      {"1w- 2w- 3w*", 2, "others while one is under way"},
      {"1w- 2w- 3wx", 2, "one that failed is passed over"},
      {"1wx", kNothing, "what failed is not tried again"},
      {"1w*", kNothing, "wait for what is under way"},
      {"1w+", kNothing, "all is well"},
      {"1u+ 2w-", 2, "load the new one before the old one goes"},
      {"1u+ 2w*", kNothing, "the old one stays while the new one loads"},
      {"1u+ 2w+", -1, "then the old one goes"},
      {"1u+ 2wx", kNothing, "a broken version never unseats the good one"},
      {"1u*", kNothing, "an unload under way"},
      {"1u+", -1, "nothing is wanted"},
      {"1u+ 2u+", -1, "nothing is wanted: the lowest first"},
      {"1u+ 2u+ 3w-", -1, "two unwanted ones: one may go before the load"},
      {"2u+ 3w-", 3, "but not the last"},
      {"1u+ 2u* 3w-", 3, "one that is going does not count"},
      {"1u- 2w+", kNothing, "unwanted ones are not loaded"},
      {"1ux 2w-", 2, "failed and unwanted"},
      {"1u+ 2w+ 3w-", -1, "unload before the next load"},
      {"1wd", kNothing, "on demand: nobody asked"},
      {"1w+ 2wd", kNothing, "on demand beside a wanted one that is ready"},
      {"1u+ 2wd", 2, "on demand, but one in use has to be replaced"},
      {"1u* 2wd", kNothing, "the one in use is going already"},
      {"1wd 2w-", 2, "on demand, and asked for"},
  };
  for (const auto& row : kRows) {
    const auto step = NextStep(ViewsOf(row.versions));
    const int got = !step ? 0
                    : step->kind == Step::kLoad
                        ? static_cast<int>(step->version)
                        : -static_cast<int>(step->version);
    EXPECT_EQ(got, row.step) << row.versions << ": " << row.why;
  }
}

// From any state, steps that succeed end with the wanted versions alone, and
// at no time is none ready if one was.
TEST(ModelTransition, ComesToRestWithWhatIsWanted) {
  for (int wanted = 0; wanted < 16; ++wanted) {
    for (int ready = 0; ready < 16; ++ready) {
      std::vector<VersionView> views(4);
      for (int i = 0; i < 4; ++i) {
        views[i] = {
            i, (wanted >> i & 1) != 0,
            (ready >> i & 1) != 0 ? VersionView::kReady : VersionView::kOut};
      }
      int steps = 0, now = ready;
      while (const auto step = NextStep(views)) {
        ASSERT_LT(++steps, 10);
        now ^= 1 << step->version;
        if (wanted != 0 && ready != 0) {
          EXPECT_NE(now, 0);
        }
        views[step->version].state =
            step->kind == Step::kLoad ? VersionView::kReady : VersionView::kOut;
      }
      EXPECT_EQ(now, wanted);
    }
  }
}

}  // namespace
}  // namespace headrace::serving
