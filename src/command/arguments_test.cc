#include "command/arguments.h"

#include "absl/strings/str_split.h"
#include "command/command.h"
#include "gtest/gtest.h"

namespace headrace::command {
namespace {

constexpr PositionalDef kPath[] = {{"PATH", ""}, {"MORE", "", true}};
constexpr OptionDef kOptions[] = {{"json", 'j', "", ""},
                                  {"output", 'o', "FILE", ""},
                                  {"input", 'i', "NAME=VALUE", "", true},
                                  {"count", 'n', "COUNT", ""}};

StatusOr<Arguments> ParseLine(std::vector<std::string> args) {
  return Arguments::Parse(args, kPath, kOptions);
}

TEST(Arguments, AreReadInAllForms) {
  const auto a = ParseLine({"-j", "--output=x=y", "p", "-i", "a=1", "-ib=2",
                            "--input", "-", "--", "--q"});
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->positionals(), (std::vector<std::string>{"p", "--q"}));
  EXPECT_TRUE(a->Has("json"));
  EXPECT_EQ(a->Get("output"), "x=y");
  EXPECT_EQ(a->All("input"), (std::vector<std::string>{"a=1", "b=2", "-"}));
  EXPECT_EQ(a->Get("count"), std::nullopt);
  EXPECT_EQ(*a->Int("count", 7, 0, 9), 7);
}

TEST(Arguments, WrongUsageIsToldFromOtherErrors) {
  const std::vector<std::vector<std::string>> wrong = {
      {},          {"p", "q", "r"}, {"p", "--none"},     {"p", "-x"},
      {"p", "-o"}, {"p", "-j1"},    {"p", "-oa", "-ob"}, {"p", "--json=1"}};
  for (const auto& args : wrong) {
    const auto a = ParseLine(args);
    EXPECT_TRUE(IsUsageError(a.status())) << a.status();
  }
  EXPECT_FALSE(IsUsageError(InvalidArgument("x")));
}

TEST(Arguments, NumbersHaveLimits) {
  for (const char* text :
       {"", "x", "1.5", "-1", "11", "99999999999999999999"}) {
    const auto a = ParseLine({"p", "-n", text});
    ASSERT_TRUE(a.ok()) << a.status();
    EXPECT_TRUE(IsUsageError(a->Int("count", 0, 0, 10).status())) << text;
  }
  EXPECT_EQ(*ParseLine({"p", "-n10"})->Int("count", 0, 0, 10), 10);
  EXPECT_EQ(*ParseLine({"p", "-n0.5"})->Number("count", 0, 0, 1), 0.5);
}

TEST(Arguments, OptionsComeWithWhatTheyNeedAndWithoutWhatTheyExclude) {
  constexpr OptionDef kPair[] = {
      {"first", 0, "", ""},
      OptionDef{"second", 0, "", ""}.Needing("first"),
      OptionDef{"third", 0, "", ""}.Without("second,first")};
  const auto status = [&](std::vector<std::string> args) {
    return Arguments::Parse(args, {}, kPair).status();
  };
  EXPECT_TRUE(status({"--second", "--first"}).ok());
  EXPECT_TRUE(status({"--third"}).ok());
  EXPECT_EQ(status({"--second"}).message(), "--second needs --first");
  EXPECT_EQ(status({"--third", "--first"}).message(),
            "--third does not go with --first");
  EXPECT_TRUE(IsUsageError(status({"--second"})));
  size_t count;
  EXPECT_TRUE(IsUsageError(
      Arguments::ParseLeading({"--second", "x"}, kPair, &count).status()));
}

TEST(Arguments, TablesNameOptionsOfTheirOwn) {
  for (const CommandDef* command : AllCommands()) {
    const auto has = [&](StringView name) {
      for (const OptionDef& o : command->options) {
        if (o.name == name) return true;
      }
      return false;
    };
    for (const OptionDef& o : command->options) {
      EXPECT_TRUE(o.needs.empty() || has(o.needs)) << o.name;
      for (StringView name :
           absl::StrSplit(o.excludes, ',', absl::SkipEmpty())) {
        EXPECT_TRUE(has(name)) << command->name << " " << name;
      }
    }
  }
}

}  // namespace
}  // namespace headrace::command
