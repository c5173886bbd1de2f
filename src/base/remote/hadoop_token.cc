#include "base/remote/hadoop_token.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"

namespace headrace {
namespace {

constexpr StringView kMagic = "HDTS";
constexpr char kWritable = 0, kProtobuf = 1;

class TokenReader {
 public:
  explicit TokenReader(StringView bytes) : rest_(bytes) {}

  StringView rest() const { return rest_; }

  StatusOr<StringView> Bytes(size_t n) {
    if (n > rest_.size()) return DataLoss("a file of tokens ends too early");
    const StringView out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }
  // Java's WritableUtils.readVInt: one byte from -112 on, else how many bytes
  // follow, the highest first. Counts are never negative here.
  StatusOr<size_t> Count() {
    HR_ASSIGN_OR_RETURN(const StringView head, Bytes(1));
    const auto first = static_cast<signed char>(head[0]);
    if (first >= 0) return static_cast<size_t>(first);
    if (first >= -112 || first < -116) {
      return DataLoss("a file of tokens has a wrong length");
    }
    HR_ASSIGN_OR_RETURN(const StringView more, Bytes(-112 - first));
    size_t n = 0;
    for (const char c : more) n = n << 8 | static_cast<unsigned char>(c);
    return n;
  }
  StatusOr<StringView> Text() {
    HR_ASSIGN_OR_RETURN(const size_t n, Count());
    return Bytes(n);
  }

 private:
  StringView rest_;
};

}  // namespace

StatusOr<std::vector<HadoopToken>> ParseHadoopTokens(StringView bytes) {
  TokenReader in(bytes);
  HR_ASSIGN_OR_RETURN(const StringView magic, in.Bytes(kMagic.size()));
  HR_ASSIGN_OR_RETURN(const StringView version, in.Bytes(1));
  if (magic != kMagic) return DataLoss("this is no file of Hadoop's tokens");
  if (version[0] == kProtobuf) {
    return Unimplemented(
        "a file of tokens in the form of protocol buffers; `hdfs dtutil edit "
        "-format java FILE` writes the other one");
  }
  if (version[0] != kWritable) {
    return DataLoss("a file of tokens of an unknown version");
  }
  HR_ASSIGN_OR_RETURN(const size_t count, in.Count());
  std::vector<HadoopToken> tokens;
  for (size_t i = 0; i < count; ++i) {
    HR_RETURN_IF_ERROR(in.Text().status());  // its alias
    const StringView begin = in.rest();
    HR_RETURN_IF_ERROR(in.Text().status());  // its identifier
    HR_RETURN_IF_ERROR(in.Text().status());  // its password
    HR_ASSIGN_OR_RETURN(const StringView kind, in.Text());
    HR_ASSIGN_OR_RETURN(const StringView service, in.Text());
    const StringView whole = begin.substr(0, begin.size() - in.rest().size());
    tokens.push_back({std::string(kind), std::string(service),
                      absl::WebSafeBase64Escape(whole)});
  }
  return tokens;
}

StatusOr<std::string> TokenFor(const std::vector<HadoopToken>& tokens,
                               StringView authority) {
  const HadoopToken* only = nullptr;
  int count = 0;
  for (const HadoopToken& token : tokens) {
    if (token.kind != "HDFS_DELEGATION_TOKEN" &&
        !absl::EndsWith(token.kind, "WEBHDFS delegation")) {
      continue;
    }
    if (token.service == authority ||
        token.service == absl::StrCat("ha-hdfs:", authority)) {
      return token.text;
    }
    only = &token;
    ++count;
  }
  if (count == 0) return std::string();
  if (count == 1) return only->text;
  return FailedPrecondition("of ", count, " delegation tokens none is for ",
                            authority);
}

}  // namespace headrace
