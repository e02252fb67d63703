order = find("A-1042")
print(order["customer"], "sent A-1042 back, which cost", order["paid"])

receipt = refund("A-1042", amount=order["paid"], reason="came back unopened")
print(receipt)
