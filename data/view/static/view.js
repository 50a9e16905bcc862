/* What HTML cannot do: keys, search while one types, and news without a reload. Every page works without this. */
"use strict";
