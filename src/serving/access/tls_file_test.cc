#include "serving/access/tls_file.h"

#include <gtest/gtest.h>

#include "base/files/files.h"
#include "serving/access/test_certificates.h"

namespace headrace::serving {
namespace {

std::string SaysOf(const TlsKeys& keys) {
  const auto made = MakeTlsIdentity(keys);
  return made.ok() ? "" : std::string(made.status().message());
}

void WriteTlsTestFile(const std::string& path, StringView text) {
  std::string local;
  const auto fs = FileSystemFor(path, &local);
  ASSERT_TRUE(WriteFileAtomically(*fs, local, text).ok());
}

TEST(TlsFile, KeysThatFit) {
  TlsKeys keys = TestKeys();
  EXPECT_EQ(SaysOf(keys), "");
  // A chain, which is not looked at further.
  keys.server_cert += "between\n" + MakeTestCertificate("ca").cert;
  EXPECT_EQ(SaysOf(keys), "");
  keys.custom_ca =
      MakeTestCertificate("a").cert + MakeTestCertificate("b").cert;
  keys.client_verify = true;
  EXPECT_EQ(SaysOf(keys), "");
}

TEST(TlsFile, KeysThatAreRefused) {
  const TlsKeys good = TestKeys();
  const auto says = [&](auto change) {
    TlsKeys keys = good;
    change(keys);
    return SaysOf(keys);
  };
  using K = TlsKeys&;
  const std::string cases[][2] = {
      {says([](K k) { k.server_cert.clear(); }), "server_cert is no"},
      {says([](K k) { k.server_key.clear(); }), "server_key is no"},
      {says([](K k) { std::swap(k.server_key, k.server_cert); }),
       "server_cert is no"},
      {says([](K k) { k.server_key = TestKeys().server_key; }),
       "does not fit server_cert"},
      {says([](K k) {
         const std::string cert = k.server_cert;
         k.server_cert += cert.substr(0, cert.size() / 2);
       }),
       "chain is broken"},
      {says([](K k) { k.client_verify = true; }), "wants certificates"},
      {says([](K k) {
         k.client_verify = true;
         k.custom_ca = k.server_cert.substr(0, 200);
       }),
       "custom_ca is broken"},
  };
  for (const auto& [said, wanted] : cases) {
    EXPECT_NE(said.find(wanted), std::string::npos) << said << " / " << wanted;
  }
}

// Cut at any byte they are refused, but where only the last line's end is gone.
TEST(TlsFile, CutTexts) {
  const TlsKeys good = TestKeys();
  for (size_t n = 0; n + 2 < good.server_cert.size(); n += 7) {
    TlsKeys keys = good;
    keys.server_cert.resize(n);
    EXPECT_NE(SaysOf(keys), "") << n;
  }
  for (size_t n = 0; n + 2 < good.server_key.size(); n += 3) {
    TlsKeys keys = good;
    keys.server_key.resize(n);
    EXPECT_NE(SaysOf(keys), "") << n;
  }
}

TEST(TlsFile, TextsAndPaths) {
  const std::string folder = ::testing::TempDir() + "tls_file_test.";
  const TlsKeys keys = TestKeys(), next = TestKeys();
  WriteTlsTestFile(folder + "key", keys.server_key);
  WriteTlsTestFile(folder + "cert", keys.server_cert);
  const auto config = [&](StringView more) {
    return absl::StrCat("server_key: 'file:", folder,
                        "key' server_cert: 'file:", folder, "cert' ", more);
  };
  WriteTlsTestFile(folder + "config", config(""));
  auto file = OpenTlsFile(folder + "config");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->now()->keys == keys);
  std::vector<std::string> log;
  const auto look = [&] {
    (*file)->Look([&](const std::string& text) { log.push_back(text); });
  };
  // The one has changed, the other not yet: the old ones stay.
  WriteTlsTestFile(folder + "key", next.server_key);
  look();
  EXPECT_TRUE((*file)->now()->keys == keys);
  ASSERT_EQ(log.size(), 1);
  EXPECT_NE(log[0].find("does not fit"), std::string::npos) << log[0];
  WriteTlsTestFile(folder + "cert", next.server_cert);
  look();
  EXPECT_TRUE((*file)->now()->keys == next);
  WriteTlsTestFile(folder + "config", config("client_verify: true"));
  look();
  ASSERT_EQ(log.size(), 3);
  EXPECT_NE(log[2].find("client_verify does not change"), std::string::npos);
  EXPECT_FALSE((*file)->now()->keys.client_verify);
  EXPECT_FALSE(OpenTlsFile(folder + "none").ok());
  for (const char* name : {"key", "cert", "config"}) {
    remove((folder + name).c_str());
  }
}

}  // namespace
}  // namespace headrace::serving
