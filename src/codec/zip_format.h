// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// Numbers of the zip format (PKWARE APPNOTE 6.3.9, sections 4.3.7 to 4.3.16). Field positions are
/// counted from the record's signature.
namespace shardwright::zip {

inline constexpr std::uint32_t kLocalSignature = 0x04034b50;
inline constexpr std::uint32_t kCentralSignature = 0x02014b50;
inline constexpr std::uint32_t kDescriptorSignature = 0x08074b50;
inline constexpr std::uint32_t kEnd64Signature = 0x06064b50;
inline constexpr std::uint32_t kLocatorSignature = 0x07064b50;
inline constexpr std::uint32_t kEndSignature = 0x06054b50;

inline constexpr std::size_t kLocalBytes = 30;    // without name and extra
inline constexpr std::size_t kCentralBytes = 46;  // without name, extra and comment
inline constexpr std::size_t kEnd64Bytes = 56;    // without extensible data
inline constexpr std::size_t kLocatorBytes = 20;
inline constexpr std::size_t kEndBytes = 22;  // without comment
inline constexpr std::size_t kDescriptorBytes = 16;
inline constexpr std::size_t kDescriptor64Bytes = 24;
inline constexpr std::size_t kExtraHeaderBytes = 4;

inline constexpr std::uint16_t kFlagEncrypted = 0x0001;
inline constexpr std::uint16_t kFlagDeflateLevel = 0x0006;
inline constexpr std::uint16_t kFlagDescriptor = 0x0008;
inline constexpr std::uint16_t kFlagUtf8 = 0x0800;

inline constexpr std::uint16_t kStored = 0;
inline constexpr std::uint16_t kDeflated = 8;

inline constexpr std::uint16_t kExtraZip64 = 0x0001;
inline constexpr std::uint16_t kExtraPadding = 0x4246;  // "FB", torch's own

/// In a 16- or 32-bit field: the value is in the zip64 record or extra field.
inline constexpr std::uint16_t kIn64Short = 0xFFFF;
inline constexpr std::uint32_t kIn64 = 0xFFFFFFFF;

}  // namespace shardwright::zip
