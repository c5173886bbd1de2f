#include "distributed/handshake.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace headrace::distributed {
namespace {

constexpr char kHere[] = "/job:ps/replica:0/task:0";
constexpr char kThere[] = "/job:worker/replica:0/task:1";

Metadata Of(const PeerVersion& peer) {
  Metadata metadata{{"other", "x"}};
  Introduce(peer, &metadata);
  return metadata;
}

TEST(Handshake, WhatIsSaidIsUnderstood) {
  for (const std::string& task :
       {std::string(kThere), std::string(), std::string("a;b;c\x00\xff", 7)}) {
    const PeerVersion peer = OwnVersion(task);
    EXPECT_FALSE(peer.version.empty());
    const auto heard = IntroducedIn(Of(peer));
    ASSERT_TRUE(heard.ok()) << heard.status();
    EXPECT_EQ(*heard, peer);
    EXPECT_EQ(Fault(Of(peer)), "");
  }
  EXPECT_EQ(IntroducedIn({})->version, "");
}

TEST(Handshake, EqualsMayTalk) {
  EXPECT_TRUE(
      CheckPeer(OwnVersion(kHere), Of(OwnVersion(kThere)), "10.0.0.1:1", false)
          .ok());
}

TEST(Handshake, UnlikePeersAreNamed) {
  const PeerVersion own = OwnVersion(kHere);
  PeerVersion rows[3] = {OwnVersion(kThere), OwnVersion(kThere),
                         OwnVersion(kThere)};
  rows[0].version = "9.8.7";
  rows[1].protocol = 77;
  rows[2].graph_version = 1234;
  const char* says[3] = {"9.8.7", "77", "1234"};
  for (int i = 0; i < 3; ++i) {
    for (const bool allows : {false, true}) {
      const Status s = CheckPeer(own, Of(rows[i]), "10.0.0.1:1", allows);
      EXPECT_TRUE(absl::IsFailedPrecondition(s)) << s;
      for (const char* part : {kHere, kThere, says[i], own.version.c_str()}) {
        EXPECT_TRUE(absl::StrContains(s.message(), part)) << s << part;
      }
    }
  }
}

TEST(Handshake, TensorFlowOnlyWhereItIsAllowed) {
  const PeerVersion own = OwnVersion(kHere);
  EXPECT_TRUE(CheckPeer(own, {}, "10.0.0.1:1", true).ok());
  const Status s = CheckPeer(own, {}, "10.0.0.1:1", false);
  EXPECT_TRUE(absl::IsFailedPrecondition(s)) << s;
  for (const char* part : {kHere, "10.0.0.1:1", "TensorFlow"}) {
    EXPECT_TRUE(absl::StrContains(s.message(), part)) << s;
  }
}

TEST(Handshake, NonsenseIsRefused) {
  for (const char* text : {"", ";", "0.1.0", "0.1.0;1", "0.1.0;x;2;t",
                           "0.1.0;1;y;t", ";1;2;t", "0.1.0;99999999999;1;t"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        CheckPeer(OwnVersion(kHere), {{"headrace-peer-bin", text}}, "p", true)))
        << text;
  }
}

}  // namespace
}  // namespace headrace::distributed
