#include "base/remote/s3_settings.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "base/files/files.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

TEST(S3Settings, Paths) {
  const S3Path path = *ParseS3Path("s3://my.bucket-1//a//b c/");
  EXPECT_EQ(path.bucket, "my.bucket-1");
  EXPECT_EQ(path.key, "a//b c");
  EXPECT_EQ(ParseS3Path("s3://bucket")->key, "");
  for (const char* bad : {"s3://", "s3:///a", "s3://a@b/c", "s3://ab/c",
                          "s3://a..b/c", "s3://a\nb/c", "hdfs://bucket/a"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseS3Path(bad).status())) << bad;
  }
}

TEST(S3Settings, Profiles) {
  constexpr char kText[] =
      "# a comment\n[default]\nregion = eu-west-1 \n\n[ profile work ]\n"
      "aws_access_key_id=AK\naws_secret_access_key = a=b\ns3 =\n"
      "  region = nested\nRegion=us-west-2\n[other]\nregion=x\n";
  AwsProfile work, standard, none;
  EXPECT_TRUE(AddAwsProfile(kText, "work", &work));
  EXPECT_EQ(work["aws_secret_access_key"], "a=b");
  EXPECT_EQ(work["region"], "us-west-2");
  EXPECT_TRUE(AddAwsProfile(kText, "default", &standard));
  EXPECT_EQ(standard, (AwsProfile{{"region", "eu-west-1"}}));
  EXPECT_FALSE(AddAwsProfile(kText, "none", &none));
}

TEST(S3Settings, Places) {
  S3Settings settings;
  S3Place place = PlaceOfBucket(settings, "eu-west-1", "bucket");
  EXPECT_EQ(place.url, "https://bucket.s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(place.path, "");
  // No certificate covers a name with dots.
  place = PlaceOfBucket(settings, "cn-north-1", "my.bucket");
  EXPECT_EQ(place.url, "https://s3.cn-north-1.amazonaws.com.cn/my.bucket");
  EXPECT_EQ(place.host, "s3.cn-north-1.amazonaws.com.cn");
  settings.endpoint = "http://h:9000";
  place = PlaceOfBucket(settings, "eu-west-1", "bucket");
  EXPECT_EQ(place.url, "http://h:9000/bucket");
  EXPECT_EQ(place.host, "h:9000");
  EXPECT_EQ(place.path, "/bucket");
}

class S3Environment : public testing::Test {
 protected:
  void SetUp() override {
    Set("AWS_CONFIG_FILE", File("config"));
    Set("AWS_SHARED_CREDENTIALS_FILE", File("credentials"));
  }
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void Set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }
  static std::string File(StringView name) {
    return JoinPath(testing::TempDir(), absl::StrCat("hr_aws_", name));
  }
  static void Write(StringView name, StringView text) {
    ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), File(name), text).ok());
  }
  std::vector<std::string> set_;
};

TEST_F(S3Environment, VariablesStandAboveFiles) {
  Write("config",
        "[profile work]\nregion=eu-west-1\nendpoint_url=http://c:1/\n"
        "[profile far]\nrole_arn=arn\n");
  Write("credentials",
        "[work]\naws_access_key_id=A\naws_secret_access_key=B\n"
        "aws_session_token=C\n");
  EXPECT_EQ(S3Settings::FromEnvironment()->credentials.id, "");
  EXPECT_EQ(S3Settings::FromEnvironment()->region, "us-east-1");
  Set("AWS_PROFILE", "work");
  S3Settings got = *S3Settings::FromEnvironment();
  EXPECT_EQ(
      got.credentials.id + got.credentials.secret + got.credentials.session,
      "ABC");
  EXPECT_EQ(got.region, "eu-west-1");
  EXPECT_EQ(got.endpoint, "http://c:1");
  const std::string key = S3Settings::Key();
  Set("AWS_DEFAULT_REGION", "us-west-2");
  Set("S3_ENDPOINT", "h:9000");
  Set("S3_USE_HTTPS", "0");
  Set("S3_VERIFY_SSL", "0");
  Set("S3_CA_FILE", "/ca");
  Set("AWS_ACCESS_KEY_ID", "D");
  Set("AWS_SECRET_ACCESS_KEY", "E");
  got = *S3Settings::FromEnvironment();
  EXPECT_EQ(got.credentials.id + got.credentials.session, "D");
  EXPECT_EQ(got.region, "us-west-2");
  EXPECT_EQ(got.endpoint, "http://h:9000");
  EXPECT_FALSE(got.verify);
  EXPECT_EQ(got.certificates, "/ca");
  EXPECT_NE(S3Settings::Key(), key);
}

TEST_F(S3Environment, WhatIsWrongIsNamed) {
  Write("config", "[profile far]\nrole_arn=arn\n");
  Write("credentials", "");
  const auto told = [](StringView word) {
    const Status s = S3Settings::FromEnvironment().status();
    return !s.ok() && absl::StrContains(s.message(), word);
  };
  Set("AWS_PROFILE", "none");
  EXPECT_TRUE(told("AWS_PROFILE is none"));
  Set("AWS_PROFILE", "far");
  EXPECT_TRUE(told("credentials of S3 by role_arn"));
  unsetenv("AWS_PROFILE");
  Set("AWS_WEB_IDENTITY_TOKEN_FILE", "/f");
  EXPECT_TRUE(told("AWS_WEB_IDENTITY_TOKEN_FILE"));
  unsetenv("AWS_WEB_IDENTITY_TOKEN_FILE");
  for (const auto& [name, value, word] :
       std::vector<std::array<std::string, 3>>{
           {"AWS_ACCESS_KEY_ID", "A", "only one is set"},
           {"AWS_REGION", "a.b/", "'a.b/' is no name"},
           {"S3_ENDPOINT", "a/b", "'https://a/b', is not"},
           {"AWS_ENDPOINT_URL", "ftp://a", "'ftp://a', is not"},
           {"S3_VERIFY_SSL", "maybe", "S3_VERIFY_SSL is 'maybe'"},
           {"HEADRACE_S3_TIMEOUT", "soon", "HEADRACE_S3_TIMEOUT"}}) {
    Set(name, value);
    EXPECT_TRUE(told(word)) << name;
    unsetenv(name.c_str());
  }
}

}  // namespace
}  // namespace headrace
