"""The numbers and layouts of ELF, 64-bit and little-endian; names as in the gABI.

The readers of images and the writers of objects both use these.
"""

from __future__ import annotations

import struct

MAGIC = b"\x7fELF"
# 64 bits, little-endian, version 1.
IDENT = MAGIC + b"\x02\x01\x01"

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")

ET_REL = 1
EM_CUDA = 190

SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE = 0, 1, 2, 3, 4, 7
SHT_NOBITS, SHT_REL, SHT_GROUP, SHT_SYMTAB_SHNDX = 8, 9, 17, 18
SHT_LLVM_ADDRSIG = 0x6FFF4C03
SHF_ALLOC = 2
SHN_UNDEF, SHN_XINDEX = 0, 0xFFFF

STB_LOCAL, STB_GLOBAL = 0, 1
STT_NOTYPE, STT_OBJECT = 0, 1
STV_DEFAULT, STV_HIDDEN = 0, 2
