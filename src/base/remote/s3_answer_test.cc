#include "base/remote/s3_answer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/xml_value.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

constexpr char kPage[] =
    "<?xml version=\"1.0\"?><ListBucketResult "
    "xmlns=\"http://s3\"><EncodingType>"
    "url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>"
    "t</NextContinuationToken><Contents><Key>d/a%20b%2F+c</Key><Size>5</Size>"
    "</Contents><CommonPrefixes><Prefix>d/z/</Prefix></CommonPrefixes>"
    "</ListBucketResult>";
constexpr char kUploadId[] =
    "<InitiateMultipartUploadResult><UploadId>u</UploadId>"
    "</InitiateMultipartUploadResult>";
constexpr char kTag[] =
    "<CopyObjectResult><ETag>&quot;t&quot;</ETag></CopyObjectResult>";
constexpr char kDeletions[] =
    "<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code><Message>no"
    "</Message></Error></DeleteResult>";

TEST(S3Answer, ReadsWhatServersSay) {
  const S3Page page = *ParseS3Page(kPage, "d/");
  EXPECT_EQ(page.keys, std::vector<std::string>{"d/a b/ c"});
  EXPECT_EQ(page.prefixes, std::vector<std::string>{"d/z/"});
  EXPECT_EQ(page.next, "t");
  EXPECT_TRUE(absl::IsDataLoss(ParseS3Page(kPage, "e/").status()));
  EXPECT_EQ(*ParseUploadId(kUploadId), "u");
  EXPECT_EQ(*ParseCopyTag(kTag), "\"t\"");
  EXPECT_EQ(
      ParseDeletions(kDeletions),
      Status(absl::StatusCode::kPermissionDenied, "k: no (AccessDenied)"));
  EXPECT_TRUE(ParseDeletions("<DeleteResult/>").ok());
}

TEST(S3Answer, CutAnswersAreDataLoss) {
  for (size_t n = 0; n + 1 < sizeof(kPage); ++n) {
    EXPECT_TRUE(
        absl::IsDataLoss(ParseS3Page(StringView(kPage, n), "d/").status()));
  }
  for (size_t n = 0; n + 1 < sizeof(kUploadId); ++n) {
    EXPECT_TRUE(
        absl::IsDataLoss(ParseUploadId(StringView(kUploadId, n)).status()));
  }
  for (size_t n = 0; n + 1 < sizeof(kTag); ++n) {
    EXPECT_TRUE(absl::IsDataLoss(ParseCopyTag(StringView(kTag, n)).status()));
  }
  for (size_t n = 0; n + 1 < sizeof(kDeletions); ++n) {
    EXPECT_TRUE(absl::IsDataLoss(ParseDeletions(StringView(kDeletions, n))));
  }
}

TEST(S3Answer, Times) {
  EXPECT_EQ(*ParseHttpTime("Thu, 01 Jan 1970 00:00:01 GMT"), 1000000000);
  EXPECT_EQ(*ParseHttpTime("Wed, 12 Oct 2022 17:50:00 GMT"),
            1665597000000000000);
  for (const char* bad :
       {"", "Wed, 12 Oct 2022", "Wed, 12 anF 2022 17:50:00 GMT",
        "Wed, 12 May 1899 17:50:00 GMT", "Wed, 12 Xyz 2022 17:50:00 GMT",
        "Wed, 12 Oct 9999999 17:50:00 GMT", "Wed, 12 Oct 2022 17:50 GMT",
        "Wed, x Oct 2022 17:50:00 GMT",
        "Wed, 2147483647 Oct 2022 2147483647:2147483647:2147483647 GMT"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseHttpTime(bad).status())) << bad;
  }
}

TEST(S3Answer, ErrorsWithoutWordsAndWithHostileOnes) {
  HttpAnswer answer;
  answer.status = 404;
  S3Error error = ParseS3Error(answer, "s3://b/k");
  EXPECT_EQ(error.status,
            Status(absl::StatusCode::kNotFound, "s3://b/k: HTTP status 404"));
  answer.status = 301;
  answer.body = "<Error><Region>evil/..</Region></Error>";
  EXPECT_EQ(ParseS3Error(answer, "").trouble, S3Trouble::kNone);
  answer.headers = {{"x-amz-bucket-region", "eu-west-1"}};
  error = ParseS3Error(answer, "");
  EXPECT_EQ(error.trouble, S3Trouble::kRegion);
  EXPECT_EQ(error.region, "eu-west-1");
  answer = HttpAnswer{502, {}, "<html>" + std::string(10000, 'x')};
  error = ParseS3Error(answer, "s3://b/k");
  EXPECT_EQ(error.trouble, S3Trouble::kRetry);
  EXPECT_LT(error.status.message().size(), 400);
}

TEST(S3Answer, WritesXmlThatReadsBack) {
  const std::vector<std::string> keys = {"a<b&c>\n", "\xc3\xa4 "};
  const XmlElement root = *ParseXml(DeletionXml(keys));
  ASSERT_EQ(root.children.size(), 3);
  EXPECT_EQ(root.children[1].Text("Key"), "a<b&c>");  // (blanks are dropped)
  EXPECT_TRUE(absl::StrContains(DeletionXml(keys), "&#10;</Key>"));
  EXPECT_EQ(CompletionXml({{"\"t\""}}),
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"
            "\"t\"</ETag></Part></CompleteMultipartUpload>");
}

}  // namespace
}  // namespace headrace
