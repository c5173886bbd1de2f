#include "base/remote/aws_signature.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "base/sha256.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

std::string HexOf(const Sha256Digest& digest) {
  return absl::BytesToHexString(BytesOf(digest));
}

// Of FIPS 180-4 and RFC 4231.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(HexOf(Sha256Of("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexOf(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HexOf(Sha256Of(
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(HexOf(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(HexOf(HmacSha256(
                std::string(131, '\xaa'),
                "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Sha256, ByPiecesOfAnySize) {
  std::string million(1000000, 'a');
  for (const size_t step : {1, 55, 56, 63, 64, 65, 1000, 1000000}) {
    Sha256 hash;
    for (size_t at = 0; at < million.size(); at += step) {
      hash.Add(StringView(million).substr(at, step));
    }
    EXPECT_EQ(
        HexOf(hash.Finish()),
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

// The examples of S3's documentation: 2013-05-24, us-east-1.
std::string SignatureOf(AwsCall call) {
  const AwsCredentials credentials{
      "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
  call.host = "examplebucket.s3.amazonaws.com";
  call.region = "us-east-1";
  call.service = "s3";
  if (call.body_sum.empty()) call.body_sum = HexOf(Sha256Of(""));
  const std::string last = AwsHeaders(call, credentials, 1369353600).back();
  return last.substr(last.find("Signature=") + 10);
}

TEST(AwsSignature, PublishedExamples) {
  AwsCall get{"GET", "", "/test.txt"};
  get.headers = {"Range: bytes=0-9"};
  EXPECT_EQ(SignatureOf(get),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  AwsCall put{"PUT", "", "/test%24file.text"};
  put.body_sum = HexOf(Sha256Of("Welcome to Amazon S3."));
  put.headers = {"Date: Fri, 24 May 2013 00:00:00 GMT",
                 "x-amz-storage-class:  REDUCED_REDUNDANCY "};
  EXPECT_EQ(SignatureOf(put),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  EXPECT_EQ(SignatureOf({"GET", "", "/", "lifecycle="}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(SignatureOf({"GET", "", "/", "max-keys=2&prefix=J"}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(AwsSignature, SignsAllHeaders) {
  const auto headers =
      AwsHeaders({"GET", "h", "/", "", kUnsignedBody, "r", "s3", {"Range: b"}},
                 {"id", "secret", "session"}, 0);
  EXPECT_EQ(headers[0], "Host: h");
  EXPECT_EQ(headers[3], "x-amz-security-token: session");
  EXPECT_TRUE(absl::StrContains(
      headers.back(),
      "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date;"
      "x-amz-security-token,"));
}

}  // namespace
}  // namespace headrace
