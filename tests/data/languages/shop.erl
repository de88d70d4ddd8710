% Functions of Erlang's own, and one whose time is spent in code in C that it calls.
-module(shop).
-export([main/0]).

serve(0, Sum) -> Sum;
serve(Price, Sum) -> serve(Price - 1, (Sum + Price * Price) rem 1000003).

pack(0, _, Size) -> Size;
pack(Parcels, Goods, Size) -> pack(Parcels - 1, Goods, Size + byte_size(term_to_binary(Goods))).

day(0, Total) -> Total;
day(Customers, Total) -> day(Customers - 1, Total bxor serve(10000, 0)).

main() ->
    day(4000, 0),
    pack(300, lists:seq(100000, 110000), 0),
    halt().
