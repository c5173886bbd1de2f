// Memory of the C library that is freed and soon asked for again.
#pragma once

namespace headrace {

// Has the C library keep up to 16 MB that are free at the end of each of its
// heaps, where it gives back all beyond 128 KB at first: what comes from a
// network is blocks of some ten kilobytes that live for less than a
// millisecond, and a page that is given back costs more to get again, zeroed,
// than to fill. It keeps as much, or more, by itself once a mapped block of 8
// MB was freed (mallopt's M_MMAP_THRESHOLD). Limits that a program or its
// environment has set stay, and so do other allocators.
void KeepFreedHeap();

}  // namespace headrace
