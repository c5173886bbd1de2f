// Records of separated fields (RFC 4180):
//
//   file   := record (end record)* [end]      end := LF | CR | CR LF
//   record := field (delimiter field)*
//   field  := any bytes but delimiters and ends, and no quotes
//           | '"' any bytes, each quote doubled '"'
//
// Without `quotes`, quotes are bytes like others.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"

namespace headrace {

struct CsvFormat {
  char delimiter = ',';
  bool quotes = true;
};

// Appends the fields of one record, without its end. An empty record has none.
// InvalidArgument for quotes at the wrong places.
Status SplitCsvRecord(StringView record, const CsvFormat& format,
                      std::vector<std::string>* fields);

// Parses a field, blanks around it or not, into an element of type float,
// double, int32 or int64; false when it is none, or too large.
bool ParseCsvNumber(StringView field, DType dtype, void* out);

// Finds where a record ends in a text of which more and more is known.
class CsvRecordEnd {
 public:
  explicit CsvRecordEnd(const CsvFormat& format) : format_(format) {}

  // Looks at `text`, which begins with all that was shown before. False: the
  // record goes on behind it. With `at_end` nothing comes behind, and the
  // record ends there if not before.
  bool Find(StringView text, bool at_end);
  // Behind a true Find: the record's bytes, without and with its end.
  size_t size() const { return size_; }
  size_t whole() const { return whole_; }

 private:
  bool Found(size_t size, size_t whole);

  const CsvFormat format_;
  size_t at_ = 0;  // looked at so far
  size_t size_ = 0, whole_ = 0;
  bool in_quotes_ = false;
  bool field_begins_ = true;   // a quote here opens a field
  bool behind_quote_ = false;  // or goes on with it
};

}  // namespace headrace
