#include "serving/json/json_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "serving/json/json_float.h"
#include "serving/json/json_string.h"

namespace headrace::serving {
namespace {

std::string CheckError(StringView text) {
  const auto body = CheckJson(text);
  return body.ok() ? "" : std::string(body.status().message());
}

TEST(JsonText, ErrorsTellReasonAndOffset) {
  const struct {
    StringView text;
    const char* error;
  } rows[] = {
      {"", "JSON Parse error: The document is empty"},
      {" \n", "JSON Parse error: The document is empty. at offset: 2"},
      {"nul", "JSON Parse error: Invalid value. at offset: 3"},
      {"x", "JSON Parse error: Invalid value. at offset: 0"},
      {"[1 2]",
       "JSON Parse error: Missing a comma or ] after an array element. at "
       "offset: 3"},
      {"{1:2}",
       "JSON Parse error: Missing a name for object member. at offset: 1"},
      {"{\"a\" 2}",
       "JSON Parse error: Missing a colon after a name of object member. at "
       "offset: 5"},
      {"{\"a\":2 \"b\":3}",
       "JSON Parse error: Missing a comma or } after an object member. at "
       "offset: 7"},
      {"{\"a\":2,}",
       "JSON Parse error: Missing a name for object member. at offset: 7"},
      {"[1,]", "JSON Parse error: Invalid value. at offset: 3"},
      {"\"a",
       "JSON Parse error: Missing a closing quotation mark in string. at "
       "offset: 2"},
      {"\"\\q\"",
       "JSON Parse error: Invalid escape character in string. at offset: 1"},
      {"\"\\u12g4\"",
       "JSON Parse error: Incorrect hex digit after \\u escape in string. at "
       "offset: 1"},
      {"\"\\ud800x\"",
       "JSON Parse error: The surrogate pair in string is invalid. at offset: "
       "1"},
      {"\"a\nb\"",
       "JSON Parse error: Invalid escape character in string. at offset: 2"},
      {"1.", "JSON Parse error: Miss fraction part in number. at offset: 2"},
      {"1e", "JSON Parse error: Miss exponent in number. at offset: 2"},
      {"-", "JSON Parse error: Invalid value. at offset: 1"},
      {"[1e999]",
       "JSON Parse error: Number too big to be stored in double. at offset: 1"},
      {"[0.0001e400]",
       "JSON Parse error: Number too big to be stored in double. at offset: 1"},
      {"Infin", "JSON Parse error: Invalid value. at offset: 5"},
      {StringView("[1,\0]", 5),
       "JSON Parse error: Invalid value. at offset: 3"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(CheckError(row.text), row.error) << row.text;
  }
  for (const StringView good :
       {"NaN", "-NaN", "Inf", "-Infinity", "[1e-999,-0.0,1E+2]",
        "{\"a\":[{},[]],\"\":null}", "[0.000001e310]", "{} and more", "3 4"}) {
    EXPECT_EQ(CheckError(good), "") << good;
  }
}

TEST(JsonText, NestingIsNotLimited) {
  const int deep = 3000000;
  EXPECT_EQ(CheckError(std::string(deep, '[') + std::string(deep, ']')), "");
  EXPECT_NE(CheckError(std::string(deep, '[')), "");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":[";
  EXPECT_NE(CheckError(objects), "");
}

TEST(JsonText, EveryCutIsAnError) {
  const std::string whole =
      "{\"a\": [1, -2.5e3, {\"b\": \"x\\u00e9\\n\"}, null, true], \"c\": NaN}";
  EXPECT_EQ(CheckError(whole), "");
  for (size_t n = 0; n < whole.size(); ++n) {
    // The cut text ends where nothing may be read: a heap block of its own.
    const std::vector<char> cut(whole.begin(), whole.begin() + n);
    EXPECT_NE(CheckError(StringView(cut.data(), n)), "") << n;
  }
}

TEST(JsonText, FindsTheWantedMembers) {
  const auto body = CheckJson(
      " {\"z\": [1, [2, 3]], \"\\u0061\" : [ [7], {\"b\": 8}, 9 ], \"b\": 5, "
      "\"a\": 1, \"c\": {\"a\": []}} x",
      {{"a", "b", "nope"}});
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(body->members[0].value, "[ [7], {\"b\": 8}, 9 ]");
  EXPECT_EQ(body->members[0].items, 3);
  EXPECT_EQ(body->members[1].value, "5");
  EXPECT_TRUE(body->members[2].value.empty());
  EXPECT_TRUE(absl::EndsWith(body->value, "}}"));
}

TEST(JsonText, StringsAreDecoded) {
  EXPECT_EQ(JsonString(R"("a\"\\\/\b\f\n\r\t")"), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(JsonString(R"("\u00e9\u20ac\ud83d\ude00\u0000x")"),
            std::string("é€😀\0x", 11));
  EXPECT_TRUE(JsonStringIs("\"\\u0061b\"", "ab"));
  EXPECT_FALSE(JsonStringIs("\"ab\"", "abc"));
}

TEST(JsonText, ExcerptsAreCut) {
  EXPECT_EQ(JsonExcerpt("{ \"a b\" : [ 1,\n2 ] }"), "{\"a b\":[1,2]}");
  EXPECT_EQ(JsonExcerpt("[\"" + std::string(1000, 'x') + "\"]").size(), 260u);
}

TEST(JsonText, Base64) {
  EXPECT_EQ(*Base64Bytes("{ \"b64\": \"aGk=\" }"), "hi");
  EXPECT_FALSE(Base64Bytes("{\"b64\": \"!\"}").ok());
  EXPECT_FALSE(Base64Bytes("{\"b64\": 1}").ok());
  EXPECT_FALSE(Base64Bytes("{\"b64\": \"aGk=\", \"x\": 1}").ok());
}

TEST(JsonText, FastFloatsAreTheNearestOnes) {
  std::mt19937_64 engine(3);
  int fast = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto bits = static_cast<uint32_t>(engine());
    const auto value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    // As few digits as tell floats, or doubles, apart; between two floats; in
    // fixed form.
    const double between =
        (static_cast<double>(value) + std::nextafter(value, 1e30f)) / 2;
    for (const auto& text :
         {absl::StrFormat("%.9g", value), absl::StrFormat("%.17g", value),
          absl::StrFormat("%.17g", between), absl::StrFormat("%.19g", between),
          absl::StrFormat("%.6f", std::fmod(value, 1000.0f))}) {
      float found = 0;
      const char* start = text.data();
      const char* past = FastFloat(start, start + text.size(), &found);
      if (past == nullptr) continue;
      ++fast;
      EXPECT_EQ(past, start + text.size()) << text;
      EXPECT_EQ(std::bit_cast<uint32_t>(found),
                std::bit_cast<uint32_t>(std::strtof(text.c_str(), nullptr)))
          << text;
    }
  }
  EXPECT_GT(fast, 100000);
}

TEST(JsonText, CountsNumbersAhead) {
  const struct {
    StringView text;
    int64_t more;
    char at;
  } rows[] = {{"[1, 2,3 ]", 2, ']'},         {"[1]", 0, ']'},
              {"[true, null, NaN]", 2, ']'}, {"[1, \"]\", 2]", 0, ','},
              {"[1, [2], 3]", 0, ','},       {"[1, {\"a\": 2}]", 0, ','}};
  for (const auto& row : rows) {
    JsonReader at(row.text);
    ASSERT_TRUE(at.Enter());
    at.Skip();
    EXPECT_EQ(at.NumbersAhead(), row.more) << row.text;
    EXPECT_EQ(*at.here(), row.at) << row.text;
  }
  for (int64_t more = 0; more < 5000; more = more * 5 / 4 + 1) {
    for (const StringView end : {"]", "[2]]", "\"]", "{}]"}) {
      std::string text = "[1";
      for (int64_t i = 0; i < more; ++i) absl::StrAppend(&text, ",", i % 1000);
      if (end != "]") text += ",";
      absl::StrAppend(&text, end);
      JsonReader at(text);
      at.Enter();
      at.Skip();
      EXPECT_EQ(at.NumbersAhead(), end == "]" ? more : 0) << text;
    }
  }
}

// Behind a comma and a space numbers are checked by a faster way than behind a
// tab: what it says is the same, whatever stands in them.
TEST(JsonText, ListsOfNumbersAreCheckedAsOthers) {
  std::string list = "[0.5, -12.25, 0, 7, -0.0001, 123456789012345678901.5]";
  list = absl::StrCat("{\"a\": ", list, ", \"b\": [", list, ", ", list, "]}");
  const StringView names[] = {"a", "b"};
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '"') continue;  // all that follows were a string
    for (const char c : StringView(" 0719.-+eEN,]}[x\0\xff", 18)) {
      std::string text = list;
      text[i] = c;
      const auto fast = CheckJson(text, names);
      for (size_t at = 0; (at = text.find(", ", at)) != std::string::npos;) {
        text[at + 1] = '\t';
      }
      const auto slow = CheckJson(text, names);
      ASSERT_EQ(fast.status(), slow.status()) << text;
      if (!fast.ok()) continue;
      for (const int m : {0, 1}) {
        EXPECT_EQ(fast->members[m].items, slow->members[m].items) << text;
        EXPECT_EQ(fast->members[m].value.size(), slow->members[m].value.size());
      }
    }
  }
}

TEST(JsonText, DigitsEndAtAnyOtherByte) {
  // Whatever byte stands wherever behind digits, and whatever follows it.
  for (int at = 0; at < 20; ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      for (const char behind : {'0', '9', '\0', '\xff'}) {
        std::string text(24, '7');
        text[at] = static_cast<char>(byte);
        for (size_t i = at + 1; i < text.size(); ++i) text[i] = behind;
        const bool digit = byte >= '0' && byte <= '9';
        size_t end = at;
        if (digit) end = behind >= '0' && behind <= '9' ? text.size() : at + 1;
        const char* start = text.data();
        EXPECT_EQ(PastDigits(start, start + text.size()) - start, end)
            << at << " " << byte;
      }
    }
  }
}

}  // namespace
}  // namespace headrace::serving
