#include "command/output.h"

#include <unistd.h>

#include <csignal>

#include "gtest/gtest.h"

namespace headrace::command {
namespace {

TEST(Output, EscapesWhatMovesATerminal) {
  EXPECT_EQ(Escaped("a/b_c\xc3\xa9"), "a/b_c\xc3\xa9");
  EXPECT_EQ(Escaped("\x1b[2J\n\r\t"), "\\x1b[2J\\n\\r\\t");
  EXPECT_EQ(Escaped("\xe2\x80\xae"), "\\u202e");  // turns writing around
  EXPECT_EQ(Escaped("\xff\x80"), "\\xff\\x80");   // no UTF-8
  EXPECT_EQ(EscapedLines("a\n\tb\x1b"), "a\n\tb\\x1b");
}

TEST(Output, BytesAreShownAsPythonShowsThem) {
  EXPECT_EQ(BytesText(StringView("a\n\0\xff", 4)), "b'a\\n\\x00\\xff'");
  EXPECT_EQ(BytesText("it's"), "b\"it's\"");
  EXPECT_EQ(BytesText("\"it's\""), "b'\"it\\'s\"'");
}

TEST(Output, AReaderThatHasGoneAwayIsNoError) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  Output out(ends[1]);
  out.Print("text");
  EXPECT_TRUE(out.Flush().ok());
  EXPECT_TRUE(out.closed());
  std::signal(SIGPIPE, before);
  close(ends[1]);
  Output closed(ends[1]);
  closed.Print("text");
  EXPECT_FALSE(closed.Flush().ok());
}

}  // namespace
}  // namespace headrace::command
