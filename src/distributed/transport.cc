#include "distributed/transport.h"

#include <algorithm>

namespace headrace::distributed {
namespace {

bool IsVisible(char c) { return c >= 0x20 && c <= 0x7e; }

bool IsKey(const std::string& key) {
  return !key.empty() && key.compare(0, 5, "grpc-") != 0 &&
         std::all_of(key.begin(), key.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

bool IsBinary(const std::string& key) {
  return key.size() >= 4 && key.compare(key.size() - 4, 4, "-bin") == 0;
}

}  // namespace

Bytes::Bytes(std::string text) { Append(std::move(text)); }

void Bytes::Append(Piece piece) {
  if (piece.size == 0) return;
  size_ += piece.size;
  pieces_.push_back(std::move(piece));
}

void Bytes::Append(std::string text) {
  const auto owner = std::make_shared<const std::string>(std::move(text));
  Append(Piece{owner, owner->data(), owner->size()});
}

void Bytes::Append(Bytes bytes) {
  size_ += bytes.size_;
  pieces_.insert(pieces_.end(), std::make_move_iterator(bytes.pieces_.begin()),
                 std::make_move_iterator(bytes.pieces_.end()));
}

std::string Bytes::Flat() const {
  std::string all;
  all.reserve(size_);
  for (const Piece& piece : pieces_) all.append(piece.data, piece.size);
  return all;
}

std::string Fault(const std::string& path, const Metadata& metadata) {
  if (path.size() < 2 || path[0] != '/' ||
      !std::all_of(path.begin(), path.end(),
                   [](char c) { return IsVisible(c) && c != ' '; })) {
    return "\"" + path + "\" is not a method's path, /package.Service/Method";
  }
  return Fault(metadata);
}

std::string Fault(const Metadata& metadata) {
  for (const auto& [key, value] : metadata) {
    if (!IsKey(key)) return "metadata cannot have the name \"" + key + "\"";
    if (!IsBinary(key) &&
        !std::all_of(value.begin(), value.end(), &IsVisible)) {
      return "the metadata " + key +
             " has a value that is not ASCII text, for which names end in -bin";
    }
  }
  return "";
}

}  // namespace headrace::distributed
