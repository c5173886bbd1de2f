// The format is drawn in csv.h.
#include "formats/csv.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace headrace {
namespace {

// Reads a field in quotes from s[*at], behind the first quote; doubled quotes
// stand for one. Leaves *at behind the closing quote.
Status ReadQuoted(StringView s, size_t* at, std::string* field) {
  while (*at < s.size()) {
    const char ch = s[(*at)++];
    if (ch != '"') {
      *field += ch;
    } else if (*at < s.size() && s[*at] == '"') {
      *field += '"';
      ++*at;
    } else {
      return OkStatus();
    }
  }
  return InvalidArgument("Quoted field has to end with quote followed by ",
                         "delim or end");
}

}  // namespace

Status SplitCsvRecord(StringView s, const CsvFormat& format,
                      std::vector<std::string>* fields) {
  if (s.empty()) return OkStatus();
  size_t at = 0;
  while (true) {
    std::string field;
    // Quotes count only at the beginning of a field.
    if (format.quotes && at < s.size() && s[at] == '"') {
      ++at;
      HR_RETURN_IF_ERROR(ReadQuoted(s, &at, &field));
      if (at < s.size() && s[at] != format.delimiter) {
        return InvalidArgument(
            "Quote inside a string has to be escaped by another quote");
      }
    } else {
      while (at < s.size() && s[at] != format.delimiter) {
        const char ch = s[at++];
        if (ch == '\n' || ch == '\r' || (format.quotes && ch == '"')) {
          return InvalidArgument(
              "Unquoted fields cannot have quotes/CRLFs inside");
        }
        field += ch;
      }
    }
    fields->push_back(std::move(field));
    if (at >= s.size()) return OkStatus();
    ++at;  // the delimiter
  }
}

bool ParseCsvNumber(StringView field, DType dtype, void* out) {
  field = absl::StripAsciiWhitespace(field);
  switch (dtype) {
    case DType::kFloat:
      return absl::SimpleAtof(field, static_cast<float*>(out));
    case DType::kDouble:
      return absl::SimpleAtod(field, static_cast<double*>(out));
    case DType::kInt32:
      return absl::SimpleAtoi(field, static_cast<int32_t*>(out));
    case DType::kInt64:
      return absl::SimpleAtoi(field, static_cast<int64_t*>(out));
    default:
      return false;
  }
}

bool CsvRecordEnd::Found(size_t size, size_t whole) {
  size_ = size;
  whole_ = whole;
  return true;
}

bool CsvRecordEnd::Find(StringView text, bool at_end) {
  for (; at_ < text.size(); ++at_) {
    const char ch = text[at_];
    if (in_quotes_) {
      in_quotes_ = ch != '"';
      behind_quote_ = !in_quotes_;
      continue;
    }
    // A quote right behind a closing one is a doubled quote: the field goes on.
    if (format_.quotes && ch == '"' && (field_begins_ || behind_quote_)) {
      in_quotes_ = true;
      field_begins_ = behind_quote_ = false;
      continue;
    }
    behind_quote_ = false;
    field_begins_ = ch == format_.delimiter;
    if (field_begins_) continue;
    if (ch == '\n') return Found(at_, at_ + 1);
    if (ch != '\r') continue;
    // Whether a line feed belongs to it is to be seen.
    if (at_ + 1 == text.size() && !at_end) return false;
    const bool two = at_ + 1 < text.size() && text[at_ + 1] == '\n';
    return Found(at_, at_ + (two ? 2 : 1));
  }
  // The last record may lack a line end.
  return at_end && Found(text.size(), text.size());
}

}  // namespace headrace
